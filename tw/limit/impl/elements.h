#pragma once

#include <cstdint>
#include <vector>

#include "tw/ir/type.h"

namespace tw {

/// How the elements of one tile lie in another: element t at offset + sum of t[k] * strides[k].
struct Placement {
  Extents shape;  ///< of the one
  Extents strides;
  int64_t offset = 0;
  template <class F>
  void for_each(const F& visit) const {  // element, place: both counted in row-major order
    Extents t(shape.size(), 0);
    const int64_t n = count(shape);
    for (int64_t i = 0, at = offset; i < n; ++i) {
      visit(static_cast<size_t>(i), static_cast<size_t>(at));
      for (size_t axis = shape.size(); axis-- > 0;) {
        at += strides[axis];
        if (++t[axis] < shape[axis]) break;
        at -= strides[axis] * shape[axis];
        t[axis] = 0;
      }
    }
  }
};

Extents row_major(const Extents& shape);
/// Of a tile of `shape` in a smaller one of equal rank, whose extents of 1 stretch.
Placement stretching(const Extents& shape, const Extents& small);
Placement transposing(const Extents& from, const std::vector<int>& perm);
Placement slicing(const Extents& from, const Extents& start, const Extents& shape);

/// A set of elements of a tile.
class Elements {
 public:
  static Elements all(Extents shape) { return Elements(std::move(shape)); }
  static Elements none(const Extents& shape);
  /// Those of [lo, hi) along each axis.
  static Elements box(const Extents& shape, const Extents& lo, const Extents& hi);
  /// Those whose mark is not 0.
  static Elements marked(const Extents& shape, const std::vector<int64_t>& marks);

  const Extents& shape() const { return shape_; }
  bool is_all() const { return in_.empty(); }
  int64_t size() const;
  Elements operator&(const Elements& o) const;
  Elements operator|(const Elements& o) const;
  Elements operator~() const;
  bool operator==(const Elements& o) const;

  Elements stretched(const Extents& shape) const;
  /// An element of 1 is in where any that it stretches to is.
  Elements squeezed(const Extents& shape) const;
  Elements reshaped(const Extents& shape) const;
  /// What lies so in it.
  Elements taken(const Placement& p) const;
  /// All that these are of a tile of `shape`.
  Elements put(const Placement& p, const Extents& shape) const;
  /// Whether an element, counted in row-major order, is in.
  bool has(size_t i) const { return in_.empty() || in_[i] != 0; }

 private:
  explicit Elements(Extents shape) : shape_(std::move(shape)) {}

  Extents shape_;
  std::vector<uint8_t> in_;  // empty: all
};

/// How many products a[i, k] * b[k, n] are needed for the elements of out.
int64_t products(const Elements& a, const Elements& b, const Elements& out);

}  // namespace tw
