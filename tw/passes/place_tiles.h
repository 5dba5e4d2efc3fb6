#pragma once

#include "tw/passes/pipeline.h"

namespace tw {

/// Decides which values are kept in memory; all others are computed again inside each nest of
/// loops that needs them (a nest belongs to a store, a reduction, a dot, a kept or a carried
/// value).
///
///   %e = exp %x                        %e = exp %x
///   %s = reduce sum %e         =>      %e' = keep %e
///   store %e / %s                      %s = reduce sum %e'; store %e' / %s
///
/// Kept are: loads that a later store may change before their use; operands of dot; values used
/// by several nests, or by a nest in an inner loop, when computing them costs more than memory;
/// and values that a loop hands on while the variables they read are being updated.
void place_tiles(Program& p, const PassContext& context);

}  // namespace tw
