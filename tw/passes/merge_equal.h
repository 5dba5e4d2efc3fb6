#pragma once

#include "tw/passes/pipeline.h"

namespace tw {

/// Computes equal pure ops once (common subexpressions), within a region and those inside it, and
/// makes the program canonical again. Combiner regions are closed: only within each.
///   %0 = exp %x                  %0 = exp %x
///   %1 = exp %x            =>    %1 = add %0, %0
///   %2 = add %0, %1
void merge_equal(Program& p, const PassContext& context);

}  // namespace tw
