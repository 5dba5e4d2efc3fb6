#pragma once

#include "tw/graph/graph.h"

namespace tw::graph {

/// Puts computations into those that read them, where nothing is computed more often than it pays:
/// chains of elementwise functions and moves become one node, and what follows a sum becomes its
/// finish. Nodes that no output needs go.
void fuse(Graph& g);

}  // namespace tw::graph
