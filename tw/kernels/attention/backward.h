#pragma once

#include "tw/kernels/attention/attention.h"

namespace tw::kernels {

struct AttentionBackwardForm {
  DType dtype = f32;    ///< of Q, K, V, O, dO and the gradients: f32, bf16 or f16
  int64_t head = 64;    ///< elements of a head, any number
  bool causal = false;  ///< as in AttentionForm
};

/// Gradients of attention, from its inputs, its outputs O and L, and the gradient dO of O:
///   P = exp(S - L)   S = Q K^T / sqrt(head)   dS = P (dO V^T - delta)   delta = row sum of dO * O
///   dQ = dS K / sqrt(head)   dK = dS^T Q / sqrt(head)   dV = P^T dO
///   Q, O, dO, dQ [B, H, Sq, head]   K, V, dK, dV [B, Hkv, Skv, head]   L f32[B, H, Sq]
/// Heads are grouped as in attention; dK and dV sum over the heads that share a key head, inside
/// the instance, so all is bitwise repeatable. L is used as given, O only in delta. A row of L =
/// -inf sees no key and adds exactly 0, where its dO and O are finite; a key that no query sees has
/// gradients of exactly 0. NaN propagates; under a causal mask an infinity or NaN in V, O or dO may
/// reach gradients of its block that do not depend on it. Scores are computed again (Dao,
/// FlashAttention-2, 2023). Sums are f32. Error bound check::bound(softmax) with terms = the
/// largest of Skv, head and H / Hkv * Sq, and terms that count the errors of scores, of the
/// difference in dS and of subnormal products; exponents S - L past 88 overflow.
Program attention_backward_queries(const AttentionBackwardForm& form,
                                   const AttentionTiling& tiling = {});  ///< gives dQ
Program attention_backward_keys(const AttentionBackwardForm& form,
                                const AttentionTiling& tiling = {});  ///< gives dK and dV

/// Plain loops in double over Q, K, V, O, dO and L of a problem of either.
check::Reference attention_backward_queries_reference(const Problem& p,
                                                      std::span<const TensorView> inputs);
check::Reference attention_backward_keys_reference(const Problem& p,
                                                   std::span<const TensorView> inputs);

std::vector<KernelEntry> attention_backward_entries();

}  // namespace tw::kernels
