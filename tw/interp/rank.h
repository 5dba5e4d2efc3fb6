#pragma once

#include <vector>

#include "tw/interp/scalar.h"

namespace tw {

/// A value and its index.
struct Ranked {
  Scalar value, index;
};

/// Sorts pairs as top_k does: larger values first, NaN counts as largest, of equal values the lower
/// index. Where error bounds leave the order open, indices are undecided, and a value is known
/// within the largest bound.
void rank(bool floats, std::vector<Ranked>& pairs);

}  // namespace tw
