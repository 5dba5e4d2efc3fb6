#pragma once

#include <cstdint>
#include <vector>

#include "tw/tensor/tensor.h"

namespace tw::graph {

/// A buffer that is in use from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int first = 0, last = 0;
};

/// Where buffers lie in one block of memory: no two that are in use at once overlap. Larger ones
/// are placed first, each at the lowest offset that is free (Pisarchyk and Lee, 2020: greedy by
/// size).
struct Layout {
  std::vector<int64_t> offsets;  ///< multiples of kAlignment
  int64_t bytes = 0;
};
inline constexpr int64_t kAlignment = 64;
Layout place(const std::vector<Lifetime>& buffers);

/// Whether some byte lies between the first and the last of both.
bool share_bytes(const TensorView& a, const TensorView& b);

}  // namespace tw::graph
