#pragma once

#include <span>

#include "tw/check/reference.h"
#include "tw/kernels/entry.h"

namespace tw::kernels {

// What rows.h computes, in double and by plain loops: the judges of its programs.
check::Reference softmax_reference(const Problem& p, std::span<const TensorView> in);
check::Reference layernorm_reference(const Problem& p, std::span<const TensorView> in, double eps);
check::Reference rmsnorm_reference(const Problem& p, std::span<const TensorView> in, double eps);
check::Reference add_rmsnorm_reference(const Problem& p, std::span<const TensorView> in,
                                       double eps);
check::Reference row_reduce_reference(const Problem& p, std::span<const TensorView> in);
/// How many pieces a problem of sum has.
int64_t parts_of(const Problem& p);
check::Reference sum_reference(const Problem& p, std::span<const TensorView> in);
check::Reference column_reduce_reference(const Problem& p, std::span<const TensorView> in);

}  // namespace tw::kernels
