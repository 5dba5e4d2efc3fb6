#pragma once

#include "tw/passes/pipeline.h"

namespace tw {

/// Makes the implicit grid a nest of `par` loops around the body, first axis outermost.
///
///   grid [cdiv(M,64)]; store ..    =>    par axis 0 { store .. }
void nest_grid(Program& p, const PassContext& context);

}  // namespace tw
