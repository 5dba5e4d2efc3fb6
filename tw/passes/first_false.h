#pragma once

#include "tw/passes/pipeline.h"

namespace tw {

/// An assert gets the number of the first false element (kAllTrue when none is), which threads find
/// together, instead of the mask.
///   assert %m   =>   %i = iota..; %w = where %m, kAllTrue, %i; %f = reduce min %w ..; assert %f
void first_false(Program& p, const PassContext& context);

}  // namespace tw
