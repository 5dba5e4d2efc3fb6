#pragma once

#include <optional>

#include "tw/tensor/tensor.h"

namespace tw::kernels {

/// 4-bit weights in the layout of docs/quantisation.md: codes u8[N, G, group/2], scales [N, G],
/// zero points u8[N, ceil(G/2)], none when they are all 8.
struct Int4Weights {
  Tensor codes, scales;
  std::optional<Tensor> zero_points = {};
};

/// From ONNX MatMulNBits (bits = 4): `packed` u8[N, G, group/2] with neighbours in one byte, the
/// first in the low nibble; `scales` f32 or f16 of N*G elements; `zero_points` u8 of N*ceil(G/2),
/// packed as ours. UserError when types or sizes do not fit.
Int4Weights repack_onnx(const TensorView& packed, const TensorView& scales,
                        const std::optional<TensorView>& zero_points = {});

/// From AWQ: `weights` i32[K, N/8] and `zeros` i32[G, N/8], each word holding columns 0 2 4 6 1 3 5
/// 7 of its eight from the low nibble up; `scales` f16 or f32[G, N]. K = G * group.
Int4Weights repack_awq(const TensorView& weights, const TensorView& zeros,
                       const TensorView& scales);

/// From NF4 of bitsandbytes: `packed` u8 of N*K/2 elements, row-major, the first of two neighbours
/// in the high nibble; `scales` f32 of N*K/block elements (absmax; not quantised themselves). K is
/// a multiple of the block. For gemv_nf4.
Int4Weights repack_bitsandbytes(const TensorView& packed, const TensorView& scales, int64_t n,
                                int64_t k);

}  // namespace tw::kernels
