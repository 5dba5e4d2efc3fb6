#include <fmt/format.h>

#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

/// A computation over the data and the indices, which may be one tensor.
struct Gathering {
  Compute made;
  int indices = 0;  // which operand they are
};
Gathering gathering_of(Context& c, std::vector<Expr> dims) {
  Gathering g;
  g.made.operands = {c.in(0)};
  g.indices = g.made.operand(c.in(1));
  g.made.axes = std::move(dims);
  g.made.rank = static_cast<int>(g.made.axes.size());
  return g;
}

std::vector<TensorId> gather_of(Context& c) {
  const int axis = axis_attribute(c, 0, c.rank(0));
  const std::vector<Expr> data = c.info(0).dims, places = c.info(1).dims;
  std::vector<Expr> dims(data.begin(), data.begin() + axis);
  dims.insert(dims.end(), places.begin(), places.end());
  dims.insert(dims.end(), data.begin() + axis + 1, data.end());
  Gathering g = gathering_of(c, dims);
  const int count = static_cast<int>(places.size());
  std::vector<Term> place;
  for (int k = 0; k < count; ++k) place.push_back(tw::graph::axis(axis + k));
  std::vector<Term> at;
  for (int k = 0; k < c.rank(0); ++k) {
    if (k < axis) at.push_back(tw::graph::axis(k));
    if (k == axis)
      at.push_back(
          counted_from_back(load(g.indices, c.dtype(1), place), data[static_cast<size_t>(axis)]));
    if (k > axis) at.push_back(tw::graph::axis(k - 1 + count));
  }
  g.made.body = load(0, c.dtype(0), at);
  return {c.g.compute(std::move(g.made), c.name())};
}

std::vector<TensorId> gather_elements(Context& c) {
  const int axis = axis_attribute(c, 0, c.rank(0));
  if (c.rank(0) != c.rank(1)) c.fail("has data and indices of different ranks");
  const std::vector<Expr> data = c.info(0).dims, places = c.info(1).dims;
  for (size_t k = 0; k < places.size(); ++k)
    if (k != static_cast<size_t>(axis)) wants_extent(c, 1, k, min(places[k], data[k]));
  Gathering g = gathering_of(c, places);
  std::vector<Term> at = axis_terms(c.rank(0));
  std::vector<Term> from = at;
  from[static_cast<size_t>(axis)] =
      counted_from_back(load(g.indices, c.dtype(1), at), data[static_cast<size_t>(axis)]);
  g.made.body = load(0, c.dtype(0), from);
  return {c.g.compute(std::move(g.made), c.name())};
}

std::vector<TensorId> gather_nd(Context& c) {
  const std::vector<Expr> data = c.info(0).dims, places = c.info(1).dims;
  const auto batch = static_cast<int>(c.integer("batch_dims", 0));
  if (places.empty()) c.fail("has scalar indices");
  const int64_t depth = c.g.number(places.back(), "the last extent of indices of " + c.name());
  if (batch < 0 || batch >= c.rank(1) || batch + depth > c.rank(0))
    c.fail(fmt::format("places {} axes after {} of {}", depth, batch, c.rank(0)));
  for (size_t k = 0; k < static_cast<size_t>(batch); ++k) wants_extent(c, 1, k, data[k]);
  std::vector<Expr> dims(places.begin(), places.end() - 1);
  const auto placed = static_cast<int>(batch + depth);
  dims.insert(dims.end(), data.begin() + placed, data.end());
  Gathering g = gathering_of(c, dims);
  const int count = c.rank(1) - 1;
  std::vector<Term> at;
  for (int k = 0; k < c.rank(0); ++k) {
    if (k < batch) at.push_back(axis(k));
    if (k >= batch && k < placed) {
      std::vector<Term> place;
      for (int j = 0; j < count; ++j) place.push_back(axis(j));
      place.push_back(index(k - batch));
      at.push_back(
          counted_from_back(load(g.indices, c.dtype(1), place), data[static_cast<size_t>(k)]));
    }
    if (k >= placed) at.push_back(axis(count + k - placed));
  }
  g.made.body = load(0, c.dtype(0), at);
  return {c.g.compute(std::move(g.made), c.name())};
}

/// The first elements of each sequence, as many as its length, back to front.
std::vector<TensorId> reverse_sequence(Context& c) {
  const int rank = c.rank(0);
  const int time = normal_axis(c.integer("time_axis", 0), rank, "time_axis of " + c.name());
  const int batch = normal_axis(c.integer("batch_axis", 1), rank, "batch_axis of " + c.name());
  wants_rank(c, 1, 1);
  wants_extent(c, 1, 0, c.info(0).dims[static_cast<size_t>(batch)]);
  Gathering g = gathering_of(c, c.info(0).dims);
  std::vector<Term> at = axis_terms(rank);
  const Term length = cast(load(g.indices, c.dtype(1), {axis(batch)}), i64);
  const Term back = op(Opcode::sub, op(Opcode::sub, length, constant_int(i64, 1)), axis(time));
  at[static_cast<size_t>(time)] = where(op(Opcode::lt, axis(time), length), back, axis(time));
  g.made.body = load(0, c.dtype(0), at);
  return {c.g.compute(std::move(g.made), c.name())};
}

}  // namespace

std::vector<Operator> gather_operators() {
  const int64_t n = kLatestOpset;
  std::vector<Operator> all = {
      {"Gather", 1, n, gather_of},
      {"GatherElements", 11, n, gather_elements},
      {"GatherND", 11, n, gather_nd},
      {"ReverseSequence", 10, n, reverse_sequence},
  };
  for (const auto& more : {loss_operators(), scatter_operators()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace tw::graph::onnx
