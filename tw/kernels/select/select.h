#pragma once

#include <span>

#include "tw/kernels/entry.h"

namespace tw::kernels {

/// V[m, k], I[m, k] (i64): the k largest of every row of X[m, n] (f32 or bf16, any strides) and
/// their columns, largest first. NaN counts as largest, of equal values the lower column comes
/// first; exact. k <= n. One pass that keeps a sorted list, for k of some hundreds: O(n + k^2
/// log(n / k)) for elements in random order, O(n k) at worst.
Program top_k_rows(DType t, int64_t k, int64_t cols);

/// One draw from every row of probabilities P[m, n] (f32, not negative, any strides): token I[m]
/// (i64). Only the k largest can be drawn, of these only the first whose sum, largest first, stays
/// below TopP[1] (f32; the largest always may), each with probability in proportion. Ties at either
/// cut go to the lower index, so exactly the same tokens stay whatever the row looks like. The draw
/// is uniform(m, Seed[1]) (i64), so it depends on row and seed only. k <= n.
Program sample_rows(int64_t k, int64_t cols);

std::vector<KernelEntry> select_entries();

}  // namespace tw::kernels
