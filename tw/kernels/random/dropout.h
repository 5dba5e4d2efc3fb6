#pragma once

#include "tw/kernels/entry.h"

namespace tw::kernels {

struct DropoutTiling {
  int64_t rows = 1;
  int64_t cols = 1024;
};

/// Y[m, n] = X[m, n] / (1 - p) where uniform(m N + n, seed) >= p, else 0 (Srivastava et al., JMLR
/// 2014, in the form that needs no work at inference); X f32 or bf16, any strides; p f32[1], seed
/// i64[1]. The draw of an element depends on its place and the seed only (Philox 4x32-10): the same
/// for every tiling, thread count and machine, so a backward pass repeats it. Negative p drops
/// nothing; p of 1 or more, or NaN, drops all. Error bound check::bound(elementwise).
Program dropout(DType t, const DropoutTiling& tiling);

std::vector<KernelEntry> random_entries();

}  // namespace tw::kernels
