#pragma once

#include "tw/passes/pipeline.h"

namespace tw {

/// Makes one `contract` of a product of tiles that is summed over k and of what is done with the
/// sum:
///   acc = init; for i: acc = dot(f(load A), g(load B), acc)        contract {f(load A)} {g(load
///   B)} store e(acc)                                              =>     (sum) {store e(init +
///   sum)}
/// f, g and e are pointwise (elementwise ops, constants, loads, broadcasts, transposes; any number
/// of stores). Matches a lone dot too. A program stays as it is where its meaning would change:
/// when sums are used for anything but pointwise stores, when k is not walked without gaps, when
/// elements outside A and B may add anything but zero, or when rows and columns that A and B lack
/// would be stored.
void fuse_contraction(Program& p, const PassContext& context);

}  // namespace tw
