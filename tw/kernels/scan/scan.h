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

/// Of long rows that several instances share.
struct CumsumChunks {
  int64_t cols = 8192;  ///< of an instance's chunk
  int64_t group = 256;  ///< chunks whose sums an instance reads one by one
};

/// Running sums of every row: Y[m, n] = X[m, 0] + ... + X[m, n], of f32 or bf16, any strides.
/// Accumulated in f32, in the order of the row; a block of `cols` is scanned by doubling distances
/// (Hillis and Steele 1986), the sum of those before is added. NaN and infinities spread to all
/// that follow. Error bound check::bound(reduction), terms = N.
Program cumsum(const CumsumForm& form, const CumsumTiling& tiling);

/// The same in one pass over rows that instances share (decoupled look-back, Merrill and Garland
/// 2016). Instances begin in the order of chunks; each publishes the sum of its chunk, then adds
/// the sums of those before it in its group to what comes before the group, which the last chunk of
/// the group before publishes. Which sums are added in which order does not depend on who comes
/// when: results are the same bit for bit. A chain of group sums takes N / (cols * group) steps, so
/// an element goes through log2(cols) + group + N / (cols * group) + 2 additions at most: within
/// check::bound(reduction), terms = N, as above.
Program cumsum_shared_rows(const CumsumForm& form, const CumsumChunks& chunks);

check::Reference cumsum_reference(const Problem& p, std::span<const TensorView> in);

std::vector<KernelEntry> scan_entries();

}  // namespace tw::kernels
