#pragma once

#include <span>

#include "tw/kernels/entry.h"

namespace tw::kernels {

/// Kernels over the rows or columns of X[M, N] (f32 or bf16, any strides). One instance handles
/// `rows` rows (or one block of columns) and walks the other axis in chunks of `cols`; sums are
/// f32.
struct RowTiling {
  int64_t rows = 1;
  int64_t cols = 1024;
  /// Memory is what costs: rows that a chunk holds are read once and kept, longer ones are read
  /// once for all their sums.
  bool few_reads = false;
  bool parts = false;  ///< rows are longer than a chunk: how others would be done best is left out
  int64_t chunks =
      1;  ///< of columns: so many are combined before they are folded; argmax takes one
};

/// Y = exp(x - max) / sum(exp(x - max)) of every row. Error bound check::bound(softmax), terms = N.
/// A row that holds NaN or +inf, and a row of only -inf, gives NaN (as PyTorch). Rows that a chunk
/// holds are read once; longer ones three times, each time with their exponentials, or twice where
/// reads are to be few, with sums rescaled as larger elements come (Milakov and Gimelshein 2018).
Program softmax(DType t, const RowTiling& tiling);

/// Y = (x - mean) / sqrt(var + eps) * gamma + beta of every row; gamma, beta
/// [N] of the type `weights`. Two passes for
/// mean and variance, so values far from 0 keep their digits; squares that would overflow are
/// summed scaled by 2^-200, so finite rows give finite results. Error bound check::bound(norm),
/// terms = N. Where reads are to be few, means and squares of chunks are merged pairwise (Chan,
/// Golub and LeVeque 1979).
Program layernorm(DType t, const RowTiling& tiling, float eps, DType weights = f32);

/// Y = x / sqrt(mean(x^2) + eps) * gamma of every row; gamma[N]. Overflow as in layernorm.
/// Bound check::bound(norm).
Program rmsnorm(DType t, const RowTiling& tiling, float eps, DType weights = f32);

/// S = X + R, and Y = s / sqrt(mean(s^2) + eps) * gamma of every row of the sums s before they are
/// rounded to S: the residual connection before a normalisation. As rmsnorm otherwise.
Program add_rmsnorm(DType t, const RowTiling& tiling, float eps, DType weights = f32);

enum class RowReduction { sum, max, mean, argmax };
/// Y[M] over the columns of each row. sum and mean: bound check::bound(reduction). max and argmax
/// are exact; NaN wins, ties go to the lowest index (argmax is i64). Of an empty row: sum 0, max
/// -inf, mean NaN, argmax -1.
Program row_reduce(RowReduction r, DType t, const RowTiling& tiling);
/// The same over the rows of each column: Y[N].
Program column_reduce(RowReduction r, DType t, const RowTiling& tiling);

/// Y[P] (f32): sums of P pieces of X[N] (f32 or bf16, any stride), piece p from element p L on, for
/// L the least multiple of 8192 with P L >= N. The sum of all is that of the one piece of Y: two
/// calls, no atomics, bitwise repeatable. `cols` divides 8192. Error bound check::bound(reduction),
/// terms = the lesser of L and N.
Program sum_pieces(DType t, int64_t cols);

std::vector<KernelEntry> row_entries();

}  // namespace tw::kernels
