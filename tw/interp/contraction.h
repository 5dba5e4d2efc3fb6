#pragma once

#include <vector>

#include "tw/ir/program.h"

namespace tw {

/// For each value: whether it is a product of f32 or f64 that may reach an addition unrounded
/// (a*b+c may contract), through moves of data, negation, branches and loops.
std::vector<bool> contracting_products(const Program& p);

}  // namespace tw
