#pragma once

#include <optional>
#include <vector>

#include "tw/graph/graph.h"

namespace tw::graph {

/// How many elements are followed as expressions.
inline constexpr int64_t kMostContents = 1024;

/// The elements of a short integer tensor.
std::optional<std::vector<Expr>> contents_of(const Tensor& t);

/// The elements of a computation of integers whose operands' elements are known, where they are
/// expressions over dims: what Shape, Slice, Concat and arithmetic make of sizes.
std::optional<std::vector<Expr>> contents_of(const Graph& g, const Compute& c);

}  // namespace tw::graph
