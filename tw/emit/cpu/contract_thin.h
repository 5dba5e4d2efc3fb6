#pragma once

#include <string>

#include "tw/emit/cpu/contract_shape.h"
#include "tw/emit/cpu/prelude.h"

namespace tw::cpu {

/// Most rows of a product that reads B once, where it is: such a product waits for memory, and
/// packing B would only add to that.
inline constexpr int kThinRows = 4;

/// Adds functions to emitted text; returns the name of
///   f(m, n, depth, a, a_row, a_k, b, b_k, to, to_row, fresh)
/// which adds to to[i][j] (sets it, when `fresh`) the sum over k of a[i][k] * b[k][j], for m <=
/// kThinRows rows and n columns that lie side by side in B and `to`. Several rows of B at a time:
/// as many streams of memory.
std::string use_thin(Prelude& prelude, const ContractShape& s);

}  // namespace tw::cpu
