#pragma once

#include <span>

#include "tw/kernels/entry.h"

namespace tw::kernels {

/// Cross entropy of each row of logits X[M, N] (f32 or bf16) against labels i32[M]:
///   LSE[i] = log(sum over j of exp(X[i, j]))   loss[i] = LSE[i] - X[i, labels[i]]   both f32
/// A row whose label is `ignored` has loss 0; another label outside [0, N) gives NaN. LSE is -inf
/// of a row of only -inf (the loss is NaN then, as in PyTorch), +inf of a row that holds +inf, NaN
/// of one with NaN. Error bound check::bound(softmax), terms = N.
struct LossTiling {
  int64_t rows = 1;
  int64_t cols = 1024;     ///< of a chunk of the rows
  bool few_reads = false;  ///< one read, sums rescaled as larger logits come; else two
};
Program cross_entropy(DType t, int32_t ignored, const LossTiling& tiling);

check::Reference cross_entropy_reference(const Problem& p, std::span<const TensorView> inputs);

std::vector<KernelEntry> loss_entries();

}  // namespace tw::kernels
