#pragma once

#include <set>

#include "tw/ir/program.h"

namespace tw::cuda {

/// Values of f32 that nothing uses but casts to bf16, and products, quotients and choices of which
/// the same holds: 2^-14 of such a value is at most 1/64 of the last place of what is seen of it.
std::set<ValueId> values_of_few_digits(const Program& p);

}  // namespace tw::cuda
