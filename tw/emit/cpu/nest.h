#pragma once

#include "tw/emit/cpu/expression.h"

namespace tw::cpu {

/// An axis that a nest runs over.
struct Axis {
  Symbol counter;
  int64_t extent = 1;
  int tile_axis = 0;
};

/// Which axis gets the vector lanes, and how many.
struct LaneChoice {
  int axis = -1;  ///< index into the axes; -1: none
  int lanes = 1;
};

/// Axes of the shape with more than one element, with fresh counters; coordinates of all axes.
std::vector<Axis> axes_of(Context& c, const Extents& shape, Coords& at);

/// Evaluates once without writing, and prefers the axis along which memory is contiguous. Lanes
/// fill one vector register with the widest value that changes along the axis.
LaneChoice choose_lanes(Context& c, const std::vector<Axis>& axes,
                        const std::function<void(Expression&)>& evaluate);

/// The range of a loop as C++ text.
struct Range {
  std::string lo = "0", hi;
  bool whole = true;  ///< it is [0, extent) for certain
};

/// Where elements go: a view of a tensor, a stored value, or places that a scatter or atomic says
/// (then a stored value gets what an atomic gives).
struct Target {
  const View* view = nullptr;
  const Storage* storage = nullptr;
  bool streams = false;  ///< written around the caches, from a whole line on
  const Op* place = nullptr;
};

/// Computes every element of v and writes it to the target.
void emit_elements(Context& c, ValueId v, const Target& target, Writer& out);

/// Writes a register to the target; `active`: how many of its lanes count (empty: all).
void write_element(Expression& e, const Reg& r, const Target& target, const Coords& at,
                   const std::string& active);

void emit_reduce(Context& c, const Op& op, Writer& out);
void emit_top_k(Context& c, const Op& op, Writer& out);
/// Asks for the function that puts a pair into a sorted list of pairs; gives its name.
std::string use_insert(Prelude& prelude, DType t);
void emit_scan(Context& c, const Op& op, Writer& out);
/// Reductions and stores that one nest of loops can do: see ReduceNest.
void emit_reduce_group(Context& c, const std::vector<const Op*>& group, Writer& out);
/// The target may be the storage of the accumulator operand.
void emit_dot(Context& c, const Op& op, const Storage& target, Writer& out);

/// Emits the ops of a region in order.
void emit_region(Context& c, const Region& r, Writer& out);

/// `for (...) {` and the statements in it, for loops [from, to) of an expression.
void open_loops(Expression& e, const std::vector<Axis>& axes, const std::vector<Range>& ranges,
                int to, Writer& out);

}  // namespace tw::cpu
