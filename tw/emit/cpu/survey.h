#pragma once

#include <functional>
#include <vector>

#include "tw/emit/cpu/nest.h"

namespace tw::cpu {

enum class Move : uint8_t { still, unit, strided, irregular };

/// How an access of a nest over `axes` moves when the counter of one steps.
Move movement(Context& c, const Expression::Access& a, const std::vector<Axis>& axes, size_t axis);

/// The accesses of a nest, and the sizes of its registers with the loops along which they change.
struct Survey {
  std::vector<Expression::Access> accesses;
  std::vector<std::pair<int64_t, uint32_t>> sizes;
};
/// Evaluates once without writing.
Survey survey(Context& c, const std::vector<Axis>& axes,
              const std::function<void(Expression&)>& evaluate);

}  // namespace tw::cpu
