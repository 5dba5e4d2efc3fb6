#pragma once

#include "tw/ir/program.h"

namespace tw {

/// The op of two elements that a combiner without a region applies.
Opcode opcode_of(Combiner c);
/// What leaves every element as it is when combined with it. A custom combiner has none.
Number neutral(Combiner c, DType t);

}  // namespace tw
