#pragma once

#include <vector>

#include "tw/kernels/entry.h"

namespace tw::kernels {

/// Products with quantised weights, and what quantises. docs/quantisation.md fixes the layouts:
/// order of nibbles, groups, scales, zero points, tails.

/// How a matrix of 4-bit weights W[N, K] lies in memory: codes u8[N, G, group/2] for G =
/// ceil(K/group), scales [N, G], zero points u8[N, ceil(G/2)] when there are any (else they are 8).
struct Int4Layout {
  int64_t group = 64;  ///< elements along K that share a scale; even
  DType scale = f32;   ///< or f16
  bool zero_points = false;
};

/// What one instance does: rows of W, and elements of K or groups of them in one tile.
struct GemvTiling {
  int64_t rows = 32;
  int64_t depth = 4096;
};
GemvTiling int8_tiling(int64_t n, int64_t k, const Target& target);
GemvTiling int4_tiling(int64_t n, int64_t k, const Int4Layout& layout, const Target& target);

/// Y[M, N] = (X[M, K] W[N, K]^T) * S[N]: 8-bit weights, a scale for each row of W. X and Y are f32
/// or bf16, sums f32. Error bound check::bound(gemm), terms = K + 1. Infinities and NaN propagate
/// as in plain loops. Any M is right; small M is what it is for, as each row of X reads W.
Program gemv_int8(DType x, const GemvTiling& tiling);

/// Y[M, N] = X[M, K] D^T for D[n, k] = (code - zero point) * scale of its group. X and Y are f32 or
/// bf16, sums f32; the scale multiplies partial sums of its group. Error bound check::bound(gemm),
/// terms = K + 1. Scales must be finite.
Program gemv_int4(DType x, const Int4Layout& layout, const GemvTiling& tiling);

/// What the codes of NF4 stand for: NormalFloat of 4 bits, quantiles of a normal distribution
/// scaled to [-1, 1] (Dettmers et al. 2023, arXiv 2305.14314, appendix E; the values of
/// bitsandbytes).
inline constexpr float kNf4[16] = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

/// Y[M, N] = X[M, K] D^T for D[n, k] = kNf4[code] * scale of its group, in the layout of 4-bit
/// weights without zero points; X, Y, sums and error bound as in gemv_int4.
Program gemv_nf4(DType x, const Int4Layout& layout, const GemvTiling& tiling);

/// The same with activations X i8[M, K] and their scales SX f32[M, G]: sums of a group are exact
/// integers, then f32. The group is a multiple of 8. Y is f32; bound check::bound(gemm), terms =
/// G + 1 on magnitudes of the groups' sums. Frantar et al. 2022 and ggml's q4_0 x q8_0 product.
Program gemv_int4_int8(const Int4Layout& layout, const GemvTiling& tiling);

/// Q i8[M, K] and S f32[M, G]: symmetric, by groups along K: S = max|x| / 127, Q = x / S to the
/// nearest even, in [-127, 127]. A group of zeros (or of so little that S is 0) has S = 0, Q = 0.
/// Exact: every step is one IEEE operation. X must be finite. An instance does `groups` groups,
/// where a tile holds one whole.
Program quantize_int8(DType x, int64_t k, int64_t group, int64_t groups = 1);
/// Of groups that a tile of a GPU holds, how many an instance does.
int64_t groups_of_block(int64_t k, int64_t group);

/// Q e4m3[M, K] and S f32[M]: S = max|x| / 448 of each row, Q = x / S to the nearest even, at most
/// 448 in magnitude. A row of zeros (or of so little that S is 0) has S = 0, Q = 0. Exact, as
/// above. Rows that a tile holds are read once, longer ones twice.
struct QuantizeTiling {
  int64_t rows = 1;
  int64_t cols = 1024;
  int64_t chunk = 0;      ///< of longer rows; 0: cols
  bool products = false;  ///< where divisions are slow: products of bf16 give the same codes
  bool whole = true;      ///< rows of up to cols are held; else all are read twice,
                          ///< the second time by halves of a chunk
};
Program quantize_fp8(DType x, const QuantizeTiling& tiling);

/// Codes, scales and zero points of X[N, K] in the layout. Without zero points: S = max|x| / 7,
/// code = x / S to the nearest even, in [-8, 7], plus 8. With: S = (max(x, 0) - min(x, 0)) / 15, Z
/// = -min / S to the nearest even, code = x / S to the nearest even plus Z, in [0, 15]. S is
/// rounded to its type first. Where S is 0 all values are 0: code 8, with zero points Z = 0 and
/// code 0. Exact, as above. An instance does so many pairs of groups.
Program quantize_int4(DType x, const Int4Layout& layout, int64_t pairs = 1);

/// Codes and scales of X[N, K] for gemv_nf4: S = max|x| of the group rounded to its type, the code
/// is that of the entry of kNf4 nearest to x / S (of two the lower). Where S is 0 all codes are 7.
/// Exact, as above. An instance does so many groups.
Program quantize_nf4(DType x, const Int4Layout& layout, int64_t groups = 1);

/// C i32[M, N] = (A[M, K] - za[1]) (B[K, N] - zb[N]) of u8 or i8, exact modulo 2^32 (ONNX
/// MatMulInteger).
struct IntegerTiling {
  int64_t bm = 32;
  int64_t bn = 64;
  int64_t bk = 128;
};
Program matmul_integer(DType a, DType b, const IntegerTiling& tiling = {});

/// How many groups of that size K elements make.
int64_t groups_of(int64_t k, int64_t group);
/// Of quantize_int8: a group longer than a row is the row.
int64_t int8_group(int64_t k, int64_t group);

check::Reference gemv_int8_reference(const Problem& p, std::span<const TensorView> inputs);
check::Reference gemv_int4_reference(const Problem& p, std::span<const TensorView> inputs);
check::Reference gemv_nf4_reference(const Problem& p, std::span<const TensorView> inputs);
check::Reference gemv_int4_int8_reference(const Problem& p, std::span<const TensorView> inputs);
check::Reference quantize_int8_reference(const Problem& p, std::span<const TensorView> inputs);
check::Reference quantize_fp8_reference(const Problem& p, std::span<const TensorView> inputs);
check::Reference quantize_int4_reference(const Problem& p, std::span<const TensorView> inputs);
check::Reference quantize_nf4_reference(const Problem& p, std::span<const TensorView> inputs);
check::Reference matmul_integer_reference(const Problem& p, std::span<const TensorView> inputs);

std::vector<KernelEntry> quant_entries();

}  // namespace tw::kernels
