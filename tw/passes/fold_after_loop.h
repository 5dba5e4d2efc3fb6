#pragma once

#include "tw/passes/pipeline.h"

namespace tw {

/// A loop that folds a tile in every iteration into a carried value carries the tile's elements
/// instead, and folds them once behind: the threads of a block then meet once.
///
///   %c = for ... carried %a = %start                %t = for ... carried %a = full NEUTRAL
///     %r = reduce sum %x axis                 =>      %n = add %a, %x
///     %n = add %a, %r                                 yield %n
///     yield %n                                      %r = reduce sum %t axis
///                                                   %c = add %start, %r
///
/// The order in which elements are combined changes, which no program may depend on.
void fold_after_loop(Program& p, const PassContext& context);

}  // namespace tw
