#pragma once

#include <span>

#include "tw/kernels/entry.h"

namespace tw::kernels {

struct HistogramForm {
  DType dtype = f32;     ///< integers count in the bin that they name
  int64_t bins = 256;    ///< at least 1
  float lo = 0, hi = 1;  ///< of floats: bins of equal width from lo to hi > lo
};
struct HistogramTiling {
  int64_t cols = 1024;  ///< elements that are loaded together
  int64_t blocks = 64;  ///< of histogram_add: such blocks for each instance
};

/// Y[m, b] (i32) = how many elements of row m of X[M, N] fall in bin b, any strides. An integer
/// (u8, i32, i64) falls in the bin that it names; a float (f32, f16, bf16) from lo to hi in bin
/// min(trunc((x - lo) * (bins / (hi - lo))), bins - 1), computed in f32, so that hi itself falls in
/// the last one, as in torch.histc. What names no bin, NaN too, is not counted. Exact; a count of
/// 2^31 wraps. An instance counts a row in scratch of its own.
Program histogram(const HistogramForm& form, const HistogramTiling& tiling = {});

/// Adds to Y[bins] (i32, inout) how many elements of X[N] fall in each bin, as above: many
/// instances, each with counts of its own in scratch, which it adds up in Y by atomics (the
/// privatised histogram of Gomez-Luna et al., "An optimized approach to histogram computation on
/// GPU", Machine Vision and Applications 24, 2013). Exact, whatever the threads.
Program histogram_add(const HistogramForm& form, const HistogramTiling& tiling = {});

check::Reference histogram_reference(const Problem& p, std::span<const TensorView> inputs);

std::vector<KernelEntry> histogram_entries();

}  // namespace tw::kernels
