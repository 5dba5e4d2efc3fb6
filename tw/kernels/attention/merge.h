#pragma once

#include "tw/kernels/entry.h"

namespace tw::kernels {

/// Two results of attention over different keys become that over all of them:
///   L = log(exp(L1) + exp(L2))   O = exp(L1 - L) O1 + exp(L2 - L) O2
///   O1, O2, O [B, H, Sq, head], f32, bf16 or f16   L1, L2, L f32[B, H, Sq]
/// A state of L = -inf is empty, whatever its O: the other is returned bit for bit (-0 and NaN
/// too), of two empty ones (0, -inf). NaN propagates, an L of +inf gives NaN. Weights are relative
/// to the larger L, so nothing overflows (Milakov and Gimelshein, Online normalizer calculation for
/// softmax, 2018). Error bound check::bound(softmax) with 2 terms, and terms that count the errors
/// of the weights.
Program attention_merge(DType t, int64_t head, int64_t rows = 16);

/// Plain code in double over O1, L1, O2, L2 of a problem of attention_merge.
check::Reference attention_merge_reference(const Problem& p, std::span<const TensorView> inputs);

}  // namespace tw::kernels
