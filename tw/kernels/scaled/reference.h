#pragma once

#include "tw/kernels/entry.h"

namespace tw::kernels {

check::Reference gemm_scaled_reference(const Problem& p, std::span<const TensorView> inputs);
check::Reference quantize_mx_reference(const Problem& p, std::span<const TensorView> inputs);

}  // namespace tw::kernels
