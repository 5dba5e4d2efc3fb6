#pragma once

#include "tw/graph/graph.h"

namespace tw::graph {

/// A sum over k of (x == k) times b(k) becomes b(x), or 0 where x is no k: a product with one-hot
/// rows becomes a lookup. Only where b reads finite constants, because 0 times infinity is NaN.
/// Whether it changed the computation.
bool look_up_one_hot(const Graph& g, Compute& c);

}  // namespace tw::graph
