#pragma once

#include <optional>
#include <string>

#include "tw/emit/cpu/nest.h"

namespace tw::cpu {

/// A nest of loops, and the condition under which it does all of its work ("": always).
struct ConditionalNest {
  std::string condition;
  Writer text;
};

/// Elements whose loads run along one axis of memory and whose target runs along another: square
/// blocks of as many elements as lanes are read along the first, transposed in registers, and
/// written along the second. None where that is not so, or extents are no multiples of the lanes.
std::optional<ConditionalNest> transposed_nest(Context& c, ValueId v, const Target& target);

}  // namespace tw::cpu
