#pragma once

#include <functional>
#include <vector>

#include "tw/emit/cpu/nest.h"

namespace tw::cpu {

enum class Move : uint8_t { still, unit, strided, irregular };

/// How an access moves when the counter steps.
Move movement(Context& c, const Expression::Access& a, Symbol counter);

/// The accesses of a nest, and the sizes of its registers with the loops along which they change.
struct Survey {
  std::vector<Expression::Access> accesses;
  std::vector<std::pair<int64_t, uint32_t>> sizes;
};
/// Evaluates once without writing.
Survey survey(Context& c, const std::vector<Axis>& axes,
              const std::function<void(Expression&)>& evaluate);

}  // namespace tw::cpu
