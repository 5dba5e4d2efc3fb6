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
};
/// Few tilings, many shapes: the chunk is the smallest of 64, 256, 1024 that holds a row, else
/// 1024.
RowTiling row_tiling(int64_t columns);

/// Y = exp(x - max) / sum(exp(x - max)) of every row. Error bound check::bound(softmax), terms = N.
/// A row that holds NaN or +inf, and a row of only -inf, gives NaN (as PyTorch). Rows that a chunk
/// holds are read once; longer ones three times, each time with their exponentials (Milakov and
/// Gimelshein 2018 give a form with one pass less; its rescaling costs more than it saves here).
Program softmax(DType t, const RowTiling& tiling);

/// Y = (x - mean) / sqrt(var + eps) * gamma + beta of every row; gamma, beta f32[N]. Two passes for
/// mean and variance, so values far from 0 keep their digits; squares that would overflow are
/// summed scaled by 2^-200, so finite rows give finite results. Error bound check::bound(norm),
/// terms = N.
Program layernorm(DType t, const RowTiling& tiling, float eps);

/// Y = x / sqrt(mean(x^2) + eps) * gamma of every row; gamma f32[N]. Overflow as in layernorm.
/// Bound check::bound(norm).
Program rmsnorm(DType t, const RowTiling& tiling, float eps);

enum class RowReduction { sum, max, mean, argmax };
/// Y[M] over the columns of each row. sum and mean: bound check::bound(reduction). max and argmax
/// are exact; NaN wins, ties go to the lowest index (argmax is i64). Of an empty row: sum 0, max
/// -inf, mean NaN, argmax -1.
Program row_reduce(RowReduction r, DType t, const RowTiling& tiling);
/// The same over the rows of each column: Y[N].
Program column_reduce(RowReduction r, DType t, const RowTiling& tiling);

std::vector<KernelEntry> row_entries();

}  // namespace tw::kernels
