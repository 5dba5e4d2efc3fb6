#pragma once

#include <cstdint>
#include <string>

#include "tw/emit/cpu/contract_shape.h"
#include "tw/emit/cpu/prelude.h"

namespace tw::cpu {

/// What a register tile reads: panels of packed blocks; or rows of A that are a_row apart, each
/// along k, and rows of B that are b_k apart; or A with any strides.
enum class TileKind : uint8_t { packed, in_place, strided };

/// Adds functions to emitted text that compute register tiles; returns the name of
///   f(m, depth, a, b, from, from_row, to, to_row)                     packed
///   f(m, depth, a, a_row, b, b_k, from, from_row, to, to_row)         in_place
///   f(m, depth, a, a_row, a_k, b, b_k, from, from_row, to, to_row)    strided
/// which sets to[i][j] = (from ? from[i][j] : 0) + sum over k of a[i][k] * b[k][j] for the rows of
/// the height that m rounds up to and all columns.
std::string use_tile(Prelude& prelude, const ContractShape& s, TileKind kind);
/// The same for f(m), that height.
std::string use_tile_height(Prelude& prelude, const ContractShape& s);
/// The same for f(left), how many of so many rows the next tile takes, and tw_last_TYPE(rows), how
/// many the last one has.
std::string use_tile_rows(Prelude& prelude, const ContractShape& s);
/// The same for f(m, c, c_row), which fetches so many rows of a tile of sums into the first cache.
/// Tiles themselves do not: that costs short ones 3 %.
std::string use_tile_fetch(Prelude& prelude, const ContractShape& s);
/// The same for tw_transpose(x): x[i][l] becomes x[l][i], for as many vectors as lanes.
void use_transpose(Prelude& prelude, DType type, int lanes);

}  // namespace tw::cpu
