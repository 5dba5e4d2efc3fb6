#pragma once

#include "tw/graph/graph.h"

namespace tw::graph {

/// Copies constants that products read across their memory, so that the axis that is walked first
/// lies in a row: weights of convolutions.
void lay_out_constants(Graph& g);

}  // namespace tw::graph
