#pragma once

#include <optional>

#include "tw/runtime/device.h"
#include "tw/tensor/tensor.h"

namespace tw::kernels {

/// Sequences of different lengths, one after the other in each tensor: sequence s has the queries
/// query_offsets[s] .. query_offsets[s + 1] and the keys key_offsets[s] .. key_offsets[s + 1].
/// Either may be none.
struct PackedSequences {
  TensorView Q;              ///< [queries of all, H, head], f32, bf16 or f16
  TensorView K;              ///< [keys of all, Hkv, head]
  TensorView V;              ///< as K
  TensorView query_offsets;  ///< i32 or i64 [sequences + 1], ascending from 0 to all queries
  TensorView key_offsets;    ///< the same, to all keys
};

struct PackedOptions {
  bool causal = false;                ///< in each sequence as in AttentionForm
  float softcap = 0;                  ///< as in AttentionForm; gradients have none
  std::optional<Device> device = {};  ///< default: cpu:0
};

/// What attention says of one sequence, for each: O as Q, and L f32[H, queries of all]. One kernel
/// for all sequences, run on a view of each. Traces and finds the compiled kernel at each call.
/// UserError when types, extents or offsets do not fit.
struct PackedAttention {
  Tensor O, L;
};
PackedAttention attention_packed(const PackedSequences& x, const PackedOptions& options = {});

/// What attention_backward_queries and attention_backward_keys say of each sequence, from the
/// results of attention_packed and the gradient of O: dQ as Q, dK and dV as K.
struct PackedGradients {
  Tensor dQ, dK, dV;
};
PackedGradients attention_packed_backward(const PackedSequences& x, const PackedAttention& results,
                                          const TensorView& dO, const PackedOptions& options = {});

}  // namespace tw::kernels
