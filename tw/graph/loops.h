#pragma once

#include <vector>

#include "tw/graph/graph.h"
#include "tw/math/facts.h"

namespace tw::graph {

/// A computation with how it sees its operands, apart from the graph: what a program is traced of.
/// The result lies in memory in row-major order.
struct Loops {
  Compute compute;
  std::vector<std::vector<Expr>> operand_dims;  ///< of compute.operands
  std::vector<DType> operand_types;
  std::vector<std::vector<Expr>> operand_strides = {};  ///< in elements; none: row-major
  std::vector<Expr> operand_offsets = {};               ///< of the first element

  std::vector<Expr> result_dims() const {
    return {compute.axes.begin(), compute.axes.begin() + compute.rank};
  }
};

/// That axes count from 0 up to their extents.
Facts facts_of(const std::vector<Expr>& axes);

/// One axis less: those above `gone` move down by one, and `gone` itself becomes `instead`.
void drop_axis(Compute& c, int gone, const Expr& instead);

Loops loops_of(const Graph& g, const Compute& c);

/// Operands get views in which they are read (views.h). Neighbouring axes that every operand has
/// side by side, or not at all, become one. Axes of extent 1 go.
Loops collapse(const Graph& g, Loops l);

/// The row-major place of the element that is read of a tensor of those extents; none where data
/// decides it.
std::optional<Expr> flat_index(const TermNode& load, const std::vector<Expr>& dims);

/// Whether the result is its one operand, element for element in row-major order.
bool keeps_order(const Graph& g, const Compute& c);

}  // namespace tw::graph
