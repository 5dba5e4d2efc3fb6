#pragma once

#include <span>
#include <vector>

#include "tw/kernels/entry.h"

namespace tw::kernels {

struct AttentionForm {
  DType dtype = f32;    ///< of Q, K, V, the bias and O: f32, bf16 or f16
  int64_t head = 64;    ///< elements of a head, any number
  bool causal = false;  ///< query i sees keys j <= i + Skv - Sq (the corner at the bottom right)
  bool bias = false;    ///< a bias[B, H, Sq, Skv] is added to the scores
  float softcap = 0;    ///< c > 0: scores become c tanh(score / c), before bias and mask
};

/// Queries and keys of a block; scores of one block stay in the first cache.
struct AttentionTiling {
  int64_t queries = 64;
  int64_t keys = 64;
  /// The products are of the type of the data, as matrix units take them, and so the weights are
  /// rounded to it; else they are of f32.
  bool narrow = false;
};

/// The usual one of a machine.
AttentionTiling attention_tiling(const AttentionForm& form, const Target& target);

/// O = softmax(Q K^T / sqrt(head) + bias) V for each of B x H heads, and L, the logarithm of each
/// row's sum of exponentials (a bias of -inf hides a key; it may repeat along axes of stride 0):
///   Q, O [B, H, Sq, head]   K, V [B, Hkv, Skv, head]   L f32[B, H, Sq]
/// Head h reads key head h / (H / Hkv): Hkv = H is multi-head, 1 is multi-query attention; H must
/// be a multiple of Hkv. A row that sees no key gives 0, and L = -inf. NaN propagates; under a
/// causal mask an infinity or NaN in V may reach queries of its block that do not see its key, as
/// their weight 0 multiplies it. One pass over the keys, rescaled as larger scores come (Milakov
/// and Gimelshein, Online normalizer calculation for softmax, 2018; Dao et al., FlashAttention,
/// 2022). Sums are f32. Error bound check::bound(softmax) with terms = the larger of Skv and head,
/// and terms that count the errors of the scores and of subnormal products; with a soft cap also
/// those of tanh_fast. For bf16 and f16, O may also be off by what rounding the weights w to that
/// type leaves, whether the tiling does so or not: u sum_j max(w_j, t) |V_j| / sum_j w_j with u its
/// unit roundoff (2^-8 and 2^-11) and t its least normal number, of weights whose largest is 1 (an
/// infinity in V times a weight that rounds to 0 is NaN).
Program attention(const AttentionForm& form, const AttentionTiling& tiling = {});

/// UserError unless a problem's heads are a multiple of its key heads.
void require_shared_heads(const Problem& p);

/// The cap that a problem's option names, 0 for none.
float attention_softcap(const Problem& p);

/// Plain loops in double over Q, K, V and the bias of a problem of attention.
check::Reference attention_reference(const Problem& p, std::span<const TensorView> inputs);

/// Of problems of attention and of its gradients.
std::vector<KernelEntry::Axis> attention_axes();

std::vector<KernelEntry> attention_entries();

}  // namespace tw::kernels
