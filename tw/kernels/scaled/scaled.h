#pragma once

#include "tw/kernels/entry.h"
#include "tw/lang/trace.h"

namespace tw::kernels {

/// Formats of the operands of a product.
struct ScaledOperands {
  ScaledFormat a, b;
};
/// mxfp8_e4m3, mxfp8_e5m2, mxfp6_e3m2, mxfp6_e2m3, mxfp4, nvfp4: both operands so; fp8: e4m3 with
/// f32 scales, of 1x128 in A and 128x128 in B; fp8_rows: 1x128 in both. UserError for other names.
ScaledOperands operands_named(const std::string& name);

struct ScaledTiling {
  int64_t bm = 64;
  int64_t bn = 64;
};

/// C[M, N] = A[M, K] B[N, K]^T of scaled matrices, as f32 or bf16. The operands are A, A_scale, B,
/// B_scale. Elements are multiplied by their scales in f32, sums are f32: error bound
/// check::bound(gemm) with terms = K. Extents of any size, a last block may be shorter; where a
/// scale or an element is NaN so is what it is multiplied into. The dequantised tile of a block of
/// K is what OCP MX v1.0, 6.1 calls the dot product of two MX blocks.
Program gemm_scaled(const ScaledOperands& formats, DType out, const ScaledTiling& tiling = {});

/// E[M, K] and its scales [M, ceil(K / 32)] of X[M, K] (f32 or bf16), as OCP MX v1.0, 6.3 converts:
/// a scale is the largest power of two in the largest magnitude of its 32 neighbours, over the
/// largest power of two of the element format, at least 2^-127; elements are x / scale to nearest,
/// saturating. Where a block holds an infinity or a NaN its scale is NaN and its elements are 0. A
/// block of zeros has the least scale. Exact: one rounding an element.
Program quantize_mx(DType in, DType element, int64_t rows = 8);

std::vector<KernelEntry> scaled_entries();

}  // namespace tw::kernels
