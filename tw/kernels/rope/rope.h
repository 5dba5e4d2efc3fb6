#pragma once

#include <span>

#include "tw/kernels/entry.h"

namespace tw::kernels {

struct RopeForm {
  DType dtype = f32;         ///< of X and Y: f32, bf16 or f16
  int64_t pairs = 32;        ///< of a head; it has twice as many elements
  bool interleaved = false;  ///< a pair is (x[2j], x[2j+1]), else (x[j], x[j + pairs])
};

/// Rotary embedding of X[S, H, 2 pairs] at tables cos, sin f32[S, pairs] (Su et al., RoFormer,
/// 2021):
///   (a, b) of pair j becomes (a cos[s, j] - b sin[s, j], b cos[s, j] + a sin[s, j])
/// `heads` of a token are done together. Products are exact, sums are f64. Error bound
/// check::bound(gemm) with terms = 2.
Program rope(const RopeForm& form, int64_t heads = 8);

/// The same for GPUs, whose f64 is slow: sums are f32, and rows of halves are read as they lie.
Program rope_block(const RopeForm& form, int64_t heads);

check::Reference rope_reference(const Problem& p, std::span<const TensorView> inputs);

std::vector<KernelEntry> rope_entries();

}  // namespace tw::kernels
