#pragma once

#include <vector>

#include "tw/graph/graph.h"

namespace tw::graph {

/// The meaning of a graph, element by element in plain loops: floats in double, never rounded
/// between nodes; integers exactly, wrapping in their types. Slow, and apart from everything that
/// traces and compiles: what tests compare with.
/// `inputs` in the graph's order; gives its outputs, floats as f64, others in their types.
std::vector<Tensor> evaluate(const Graph& g, const std::vector<TensorView>& inputs);

}  // namespace tw::graph
