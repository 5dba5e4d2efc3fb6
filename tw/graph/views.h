#pragma once

#include "tw/graph/loops.h"

namespace tw::graph {

/// Loads whose address is linear in the axes see their operand through a view of its own: the axes
/// that they mention are its axes, in order, with whatever strides. A transposition, a slice or the
/// window of a convolution is then a load like any other, and axes merge where strides allow it.
/// Folded axes are put in the order in which memory has them.
void view_operands(const Graph& g, Loops& l);

}  // namespace tw::graph
