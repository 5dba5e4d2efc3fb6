#pragma once

#include <string>
#include <vector>

#include "tw/graph/loops.h"
#include "tw/ir/program.h"

namespace tw::graph {

/// A computation as a tile program: its parameters are the operands, then the result.
struct Traced {
  Program program;
  std::vector<std::pair<std::string, Expr>> scalars;  ///< dims that no tensor's extent gives
};

/// Traces what is collapsed. Sums of products become dots where rows and columns can be told apart,
/// other folds loops over blocks. `name` is the program's.
Traced trace(const Graph& g, const Loops& l, const std::string& name);

}  // namespace tw::graph
