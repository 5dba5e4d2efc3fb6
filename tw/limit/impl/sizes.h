#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tw/limit/limit.h"

namespace tw {

using Coordinates = std::map<Symbol, int64_t>;

/// A program's integer expressions at given dims.
class Sizes {
 public:
  /// Throws UserError when the number of dims is wrong.
  Sizes(const Program& p, std::span<const int64_t> dims);
  /// Symbols that `at` lacks count as 0.
  int64_t value(const Expr& e, const Coordinates& at) const;
  int64_t trips(const LoopAttr& loop, const Coordinates& at) const;
  /// Extents of the grid, and how many instances it has.
  const std::vector<int64_t>& grid() const { return grid_; }
  int64_t instances() const;
  /// Coordinates of an instance, counted in row-major order.
  Coordinates instance(int64_t index) const;

 private:
  std::span<const int64_t> dims_;
  std::vector<int64_t> grid_;
};

bool holds(CompareKind kind, int64_t a, int64_t b);

/// What each element of an op's result costs (of a fold: of its operand): so many operations of one
/// unit, of which so many are flops.
struct OpCost {
  Unit unit = Unit::f32;
  double count = 0, flops = 0;
};
OpCost cost_of(const Program& p, const Op& op);

}  // namespace tw
