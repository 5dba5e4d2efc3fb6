#include "tw/graph/onnx/functions.h"
#include "tw/graph/onnx/operators.h"

// Operators in which elements have an order: sums of what lies before, and the first in size.
namespace tw::graph::onnx {

namespace {

/// Sums are of blocks, then of what the blocks before come to.
constexpr int64_t kRunningBlock = 128;

struct Running {
  int axis;
  bool exclusive, reverse;
};

/// The sum of the elements of each block along the axis.
TensorId sums_of_blocks(Context& c, TensorId x, int along) {
  const DType t = c.g.tensor(x).dtype;
  Compute made;
  made.operands = {x};
  made.axes = c.g.tensor(x).dims;
  made.rank = static_cast<int>(made.axes.size());
  made.fold = Fold::sum;
  std::vector<Term> at = axis_terms(made.rank);
  Expr& extent = made.axes[static_cast<size_t>(along)];
  extent = cdiv(extent, kRunningBlock);
  made.axes.emplace_back(kRunningBlock);
  at[static_cast<size_t>(along)] = index(Expr::symbol(axis_symbol(along)) * Expr(kRunningBlock) +
                                         Expr::symbol(axis_symbol(made.rank)));
  made.body = load(0, t, at, number_of(t, 0));
  return c.g.compute(std::move(made), c.name());
}

/// Each element's sum over those of its block that come before it, or of the whole axis.
TensorId sums_in_blocks(Context& c, TensorId x, const Running& r, bool whole) {
  const DType t = c.g.tensor(x).dtype;
  Compute made;
  made.operands = {x};
  made.axes = c.g.tensor(x).dims;
  made.rank = static_cast<int>(made.axes.size());
  made.fold = Fold::sum;
  std::vector<Term> at = axis_terms(made.rank);
  const auto a = static_cast<size_t>(r.axis);
  const Expr here = Expr::symbol(axis_symbol(r.axis));
  Expr place = Expr::symbol(axis_symbol(made.rank));
  if (!whole) place = floordiv(here, kRunningBlock) * Expr(kRunningBlock) + place;
  made.axes.push_back(whole ? made.axes[a] : Expr(kRunningBlock));
  at[a] = index(place);
  const Term one = index(r.reverse ? here : place), other = index(r.reverse ? place : here);
  const Term summed = op(r.exclusive ? Opcode::lt : Opcode::le, one, other);
  const Number zero = number_of(t, 0);
  const Term element = load(0, t, at, whole ? std::nullopt : std::optional(zero));
  made.body = where(summed, element, constant(t, zero));
  return c.g.compute(std::move(made), c.name());
}

TensorId running_sum(Context& c, TensorId x, const Running& r, int levels) {
  const auto a = static_cast<size_t>(r.axis);
  const Expr extent = c.g.tensor(x).dims[a];
  const bool whole = levels == 0 || (extent.is_constant() && extent.constant() <= kRunningBlock);
  const TensorId near = sums_in_blocks(c, x, r, whole);
  if (whole) return near;
  const Running blocks{r.axis, true, r.reverse};
  const TensorId far = running_sum(c, sums_of_blocks(c, x, r.axis), blocks, levels - 1);
  const DType t = c.g.tensor(x).dtype;
  Compute made;
  made.operands = {near, far};
  made.axes = c.g.tensor(x).dims;
  made.rank = static_cast<int>(made.axes.size());
  std::vector<Term> at = axis_terms(made.rank);
  const Term in_block = load(0, t, at);
  at[a] = index(floordiv(Expr::symbol(axis_symbol(r.axis)), kRunningBlock));
  made.body = op(Opcode::add, in_block, load(1, t, at));
  return c.g.compute(std::move(made), c.name());
}

std::vector<TensorId> cum_sum(Context& c) {
  const int64_t given = first_of(c, 1, c.numbers(1));
  const Running r{normal_axis(given, c.rank(0), "axis of " + c.node().title()),
                  c.integer("exclusive", 0) != 0, c.integer("reverse", 0) != 0};
  const DType t = c.dtype(0);
  const TensorId x = converted_to(c, c.in(0), accumulator(t));
  return {converted_to(c, running_sum(c, x, r, 2), t)};
}

/// Whether a is above b; NaN is above all numbers.
Term is_above(const Term& a, const Term& b) {
  const Term more = op(Opcode::lt, b, a);
  if (!is_float(a->dtype)) return more;
  return op(Opcode::or_, more, op(Opcode::and_, is_nan(a), op(Opcode::not_, is_nan(b))));
}

/// How many elements along the axis come before each: those above (or below) it, and of equal ones
/// the earlier.
TensorId ranks_along(Context& c, int along, bool largest) {
  Compute made;
  made.operands = {c.in(0)};
  made.axes = c.info(0).dims;
  made.rank = c.rank(0);
  made.axes.push_back(made.axes[static_cast<size_t>(along)]);
  made.fold = Fold::sum;
  std::vector<Term> at = axis_terms(made.rank);
  const DType t = accumulator(c.dtype(0));
  const Term mine = cast(load(0, c.dtype(0), at), t);
  const Term place = at[static_cast<size_t>(along)] = axis(made.rank);
  const Term other = cast(load(0, c.dtype(0), at), t);
  const Term above = is_above(other, mine), below = is_above(mine, other);
  const Term equal = op(Opcode::not_, op(Opcode::or_, above, below));
  const Term earlier = op(Opcode::and_, equal, op(Opcode::lt, place, axis(along)));
  made.body = cast(op(Opcode::or_, largest ? above : below, earlier), i32);
  return c.g.compute(std::move(made), c.name());
}

/// Where the element of each of the first ranks lies.
TensorId places_of_ranks(Context& c, TensorId ranks, int along, const Expr& count) {
  Compute made;
  made.operands = {ranks};
  made.axes = c.info(0).dims;
  made.rank = c.rank(0);
  Expr& extent = made.axes[static_cast<size_t>(along)];
  const Expr all = extent;
  extent = count;
  made.axes.push_back(all);
  made.fold = Fold::max;
  std::vector<Term> at = axis_terms(made.rank);
  at[static_cast<size_t>(along)] = axis(made.rank);
  const Term found = op(Opcode::eq, cast(load(0, i32, at), i64), axis(along));
  made.body = where(found, axis(made.rank), constant_int(i64, -1));
  return c.g.compute(std::move(made), c.name());
}

std::vector<TensorId> top_k(Context& c) {
  const int along = axis_attribute(c, -1, c.rank(0));
  const auto a = static_cast<size_t>(along);
  const Expr count = first_of(c, 1, c.contents(1)), all = c.info(0).dims[a];
  if (!c.g.same(max(count, all), all, c.name()))
    c.fail(fmt::format("wants {} elements of {}", c.g.text(count), c.g.text(all)));
  const TensorId ranks = ranks_along(c, along, c.integer("largest", 1) != 0);
  const TensorId places = places_of_ranks(c, ranks, along, count);
  Compute made;
  made.operands = {c.in(0), places};
  made.axes = c.info(0).dims;
  made.axes[a] = count;
  made.rank = c.rank(0);
  std::vector<Term> at = axis_terms(made.rank);
  at[a] = load(1, i64, at);
  made.body = load(0, c.dtype(0), at);
  return {c.g.compute(std::move(made), c.name()), places};
}

}  // namespace

std::vector<Operator> order_operators() {
  const int64_t n = kLatestOpset;
  return {{"CumSum", 11, n, cum_sum}, {"TopK", 10, n, top_k}};
}

}  // namespace tw::graph::onnx
