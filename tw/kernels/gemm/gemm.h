#pragma once

#include <optional>

#include "tw/kernels/entry.h"
#include "tw/kernels/gemm/epilogue.h"
#include "tw/runtime/device.h"

namespace tw::kernels {

/// Extents of the tile of C that an instance computes, and the step along k. A CPU cuts C into
/// pieces of its own, whatever the tile: see passes/free_tiles.
struct GemmTiling {
  int64_t bm = 64;
  int64_t bn = 64;
  int64_t bk = 64;
};

struct GemmForm {
  DType in = f32;        ///< of A and B: f32, bf16 or f16
  DType out = f32;       ///< of C: any float
  bool batched = false;  ///< A, B, C (and residuals) have a leading axis
  Epilogue epilogue = {};
  Precision precision = Precision::ieee;  ///< of products of f32; others have ieee only
};

/// The usual one of a machine.
GemmTiling gemm_tiling(const GemmForm& form, const Target& target);

/// C[M, N] = epilogue(A[M, K] B[K, N]); any strides, so the four layouts are specialisations.
/// Products of f16 and bf16 are exact, sums are f32. Error bound check::bound(gemm) with terms =
/// K (+ 1 for a bias or residual): for f32 and |A| |B| the product of magnitudes, 8 sqrt(K) 2^-24
/// |A| |B| for ieee, and beside it 2^-10 |A| |B| for tf32, 2^-19 |A| |B| for tf32x3, in which
/// elements of less than 2^-126 and 2^-116 count as these. M, N or K of 0 are fine (a sum of no
/// terms is 0). Infinities and NaN propagate as in plain loops; docs/language.md says what tf32
/// makes of the largest and smallest numbers.
Program gemm(const GemmForm& form, const GemmTiling& tiling = {});

struct GemmOptions {
  Epilogue epilogue = {};
  std::optional<DType> out = {};  ///< default: the type of A
  Precision precision = Precision::ieee;
  std::optional<Device> device = {};  ///< default: cpu:0
};
/// The product of two matrices, or of two batches of them. Traces and finds the compiled kernel at
/// each call; hold a Kernel for many calls. UserError when types or extents do not fit.
Tensor gemm(const TensorView& a, const TensorView& b, const GemmOptions& options = {});

std::vector<KernelEntry> gemm_entries();

}  // namespace tw::kernels
