#pragma once

#include <span>

#include "tw/kernels/entry.h"

namespace tw::kernels {

/// That a problem's option names.
Precision gemm_precision(const Problem& p);

/// Plain loops in double over A, B and the epilogue's operands of a problem of gemm or
/// batched_gemm.
check::Reference gemm_reference(const Problem& p, std::span<const TensorView> inputs);

}  // namespace tw::kernels
