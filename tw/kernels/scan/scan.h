#pragma once

#include <span>

#include "tw/kernels/entry.h"

namespace tw::kernels {

struct CumsumForm {
  DType dtype = f32;
  bool reverse = false;    ///< from the last element on
  bool exclusive = false;  ///< of the elements before (after), without the element itself
};
struct CumsumTiling {
  int64_t rows = 1;
  int64_t cols = 1024;
};

/// Running sums of every row: Y[m, n] = X[m, 0] + ... + X[m, n], of f32 or bf16, any strides.
/// Accumulated in f32, in the order of the row; a block of `cols` is scanned by doubling distances
/// (Hillis and Steele 1986), the sum of those before is added. NaN and infinities spread to all
/// that follow. Error bound check::bound(reduction), terms = N.
Program cumsum(const CumsumForm& form, const CumsumTiling& tiling);

check::Reference cumsum_reference(const Problem& p, std::span<const TensorView> in);

std::vector<KernelEntry> scan_entries();

}  // namespace tw::kernels
