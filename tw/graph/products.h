#pragma once

#include <optional>
#include <vector>

#include "tw/graph/loops.h"

namespace tw::graph {

/// A sum of products a * b: axes of the result that only a has are rows, those that only b has
/// columns (the last axis of the result is one of them), and all summed axes are in both.
struct Product {
  Term a, b;  ///< in the types that a dot takes; their product is in `sum`
  DType sum;
  std::vector<int> rows, columns, summed, batch;
};
std::optional<Product> product_of(const Compute& c);

/// The summed axis that is walked by itself, in blocks, as it may be long; none: all are short, and
/// taken together.
std::optional<int> walked_axis(const Compute& c, const Product& p);

/// Whether the term is 0 wherever a summed axis is past its extent, because all it reads is outside
/// its tensor there.
bool zero_outside(const Loops& l, const Term& t, const std::vector<int>& summed);

}  // namespace tw::graph
