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

/// The usual one of a machine, for operands of that type.
GemmTiling gemm_tiling(DType in, const Target& target);

struct GemmForm {
  DType in = f32;        ///< of A and B: f32, bf16 or f16
  DType out = f32;       ///< of C: any float
  bool batched = false;  ///< A, B, C (and residuals) have a leading axis
  Epilogue epilogue = {};
};

/// C[M, N] = epilogue(A[M, K] B[K, N]); any strides, so the four layouts are specialisations.
/// Products of f16 and bf16 are exact, sums are f32. Error bound check::bound(gemm) with terms =
/// K (+ 1 for a bias or residual); M, N or K of 0 are fine (a sum of no terms is 0). Infinities and
/// NaN propagate as in plain loops.
Program gemm(const GemmForm& form, const GemmTiling& tiling = {});

struct GemmOptions {
  Epilogue epilogue = {};
  std::optional<DType> out = {};      ///< default: the type of A
  std::optional<Device> device = {};  ///< default: cpu:0
};
/// The product of two matrices, or of two batches of them. Traces and finds the compiled kernel at
/// each call; hold a Kernel for many calls. UserError when types or extents do not fit.
Tensor gemm(const TensorView& a, const TensorView& b, const GemmOptions& options = {});

std::vector<KernelEntry> gemm_entries();

}  // namespace tw::kernels
