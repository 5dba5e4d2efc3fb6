#pragma once

#include "tw/tensor/tensor.h"

namespace tw {

/// Most axes of a kernel argument.
inline constexpr int kMaxRank = 32;

/// False only when no two elements of the view share memory. True also for strides whose pattern
/// this does not see through: those that do not nest.
bool overlaps_itself(const TensorView& t);

/// True only when the views, whose byte ranges meet, share no element: both are columns of one
/// wider matrix (equal largest stride, everything else inside it, at different places).
bool interleave(const TensorView& a, const TensorView& b);

}  // namespace tw
