#pragma once

#include <string>

#include "tw/emit/cpu/contract_shape.h"
#include "tw/emit/cpu/prelude.h"

namespace tw::cpu {

/// Adds functions to emitted text that compute register tiles; returns the name of
///   f(m, depth, a, a_row, a_k, b, b_k, from, from_row, to, to_row)
/// which sets to[i][j] = (from ? from[i][j] : 0) + sum over k of a[i][k] * b[k][j] for the rows of
/// the height that m rounds up to and all columns. Unless `in_place`, whole tiles have packed
/// panels.
std::string use_tile(Prelude& prelude, const ContractShape& s, bool in_place);
/// The same for f(m), that height.
std::string use_tile_height(Prelude& prelude, const ContractShape& s);
/// The same for tw_transpose(x): x[i][l] becomes x[l][i], for as many vectors as lanes.
void use_transpose(Prelude& prelude, DType type, int lanes);

}  // namespace tw::cpu
