#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tw/limit/impl/elements.h"
#include "tw/limit/impl/known.h"

namespace tw {

/// Which elements of a program's tiles must be computed, at given coordinates. An element counts
/// when a store or the like uses it, and when what it is computed from is no padding: neither what
/// loads read outside of their tensor, nor what a mask that follows from coordinates puts there.
class Needs {
 public:
  Needs(const Program& p, const Sizes& sizes);

  const Known& known() const { return known_; }

  /// Begins a region: of its values nothing is used so far, of its arguments all may be data.
  void begin(const Region& r, const Coordinates& at);
  /// Of an element of which all are computed before: which elements are data.
  const Elements& data(ValueId v) const { return data_[v]; }
  const std::optional<Elements>& wanted(ValueId v) const { return wanted_[v]; }
  void want(ValueId v, const Elements& e);

  /// The elements that an op must compute; nothing where none of its results is used.
  std::optional<Elements> needed(const Op& op) const;
  /// Those of a fold's operand, of a dot's products how many.
  Elements folded(const Op& op, const Elements& needed) const;
  int64_t multiplied(const Op& op, const Elements& needed) const;
  /// What the op needs of its operands.
  void pass(const Op& op, const Elements& needed);

  /// Of the elements of a view those inside its tensor.
  Elements inside(const View& view, const Extents& shape, const Coordinates& at) const;
  /// Of a gather, scatter or atomic: the elements not known to lie outside or be masked away.
  Elements placed(const Op& op) const;

 private:
  Elements made(const Op& op, const Coordinates& at) const;
  Elements chosen(const Op& op) const;
  Elements common(const Op& op, const Extents& shape) const;
  Elements mask(ValueId v, const Extents& shape) const;
  Elements reached(ValueId at, int64_t dim, const Extents& shape) const;
  const Extents& shape(ValueId v) const { return p_.type(v).shape; }
  void pass_dot(const Op& op, const Elements& needed);

  const Program& p_;
  const Sizes& sizes_;
  Known known_;
  std::vector<Elements> data_;
  std::vector<std::optional<Elements>> wanted_;
};

}  // namespace tw
