#pragma once

#include "tw/ir/program.h"

namespace tw {

/// Makes traced ir canonical: the text that cache keys hash, the same under every host compiler.
/// What no store needs is dropped (carried values too), ops with effects keep their order, pure ops
/// come where they are first needed, operands first, values and loops are numbered in that order.
/// Idempotent.
///   %0 = load B{0} ...            %0 = load A{0} ...
///   %1 = load A{0} ...            %1 = load B{0} ...
///   %2 = exp %1 ...          =>   %2 = add %0, %1 ...
///   %3 = add %1, %0 ...           store %2 to C{0}
///   store %3 to C{0}
void canonicalize(Program& p);

}  // namespace tw
