#pragma once

#include "tw/layout/int_tuple.h"

namespace tw {

/// A function from indices and coordinates to offsets, after CuTe: a mode `4:1` of 4 offsets that
/// are 1 apart, or a tuple of layouts, printed as `(4,(2,3)):(1,(8,16))`. An index counts the
/// coordinates with the leftmost mode fastest; the offset of a coordinate is the sum over its
/// modes. Shapes are at least 1, strides at least 0, and the largest offset fits in 64 bits.
class Layout {
 public:
  Layout() = default;  // 1:0
  explicit Layout(const IntTuple& shape, const IntTuple& stride);
  /// Offsets 0, 1, 2, ... in the order of indices: the leftmost mode has stride 1.
  static Layout compact(const IntTuple& shape);

  bool is_tuple() const { return !modes_.empty(); }
  /// Modes at the top; 1 of what is no tuple, whose mode 0 is itself.
  int rank() const { return is_tuple() ? static_cast<int>(modes_.size()) : 1; }
  const Layout& mode(int i) const;
  IntTuple shape() const;
  IntTuple stride() const;

  /// How many indices there are.
  int64_t size() const { return size_; }
  /// The largest offset, plus 1.
  int64_t cosize() const { return cosize_; }

  int64_t operator()(int64_t index) const;
  /// A coordinate has an integer or a tuple for each mode; the integer is an index of its mode.
  int64_t operator()(const IntTuple& coordinate) const;

  bool operator==(const Layout& other) const;

 private:
  friend Layout make_layout(std::vector<Layout> modes);
  int64_t offset_of(int64_t index) const;

  int64_t size_ = 1;
  int64_t cosize_ = 1;
  int64_t stride_ = 0;  // of what is no tuple
  std::vector<Layout> modes_;
};

/// The tuple of `modes`, which are not none.
Layout make_layout(std::vector<Layout> modes);

/// One shape:stride; a layout without its parentheses is a row of them.
struct ShapeStride {
  int64_t shape, stride;
};
std::vector<ShapeStride> flatten(const Layout& layout);
/// The layout of these modes; 1:0 for none, and no tuple for one.
Layout unflatten(const std::vector<ShapeStride>& modes);

std::string to_string(const Layout& layout);
/// Inverse of to_string; UserError where the text is no layout.
Layout parse_layout(const std::string& text);

}  // namespace tw
