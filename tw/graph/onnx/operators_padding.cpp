#include <fmt/format.h>

#include "tw/graph/onnx/functions.h"
#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

/// How many elements are added before and after each axis.
struct Margins {
  std::vector<Expr> before, after;
};

Margins margins_of(Context& c) {
  const int rank = c.rank(0);
  std::vector<Expr> pads;
  if (c.opset() < 11)
    for (int64_t p : c.integers(c.opset() < 2 ? "paddings" : "pads")) pads.emplace_back(p);
  else
    pads = c.contents(1);
  std::vector<int> axes;
  if (c.has(3)) {
    for (int64_t a : c.numbers(3)) axes.push_back(normal_axis(a, rank, "an axis of " + c.name()));
  } else {
    axes = axes_from(0, rank);
  }
  if (pads.size() != 2 * axes.size())
    c.fail(fmt::format("has {} pads, wanted {}", pads.size(), 2 * axes.size()));
  Margins m{std::vector<Expr>(static_cast<size_t>(rank)),
            std::vector<Expr>(static_cast<size_t>(rank))};
  for (size_t k = 0; k < axes.size(); ++k) {
    m.before[static_cast<size_t>(axes[k])] = pads[k];
    m.after[static_cast<size_t>(axes[k])] = pads[k + axes.size()];
  }
  return m;
}

/// Which element of an axis of n lies at i, outside too.
Expr folded_place(const std::string& mode, const Expr& i, const Expr& n) {
  if (mode == "edge") return min(max(i, Expr(0)), n - Expr(1));
  if (mode == "wrap") return mod(i, n);
  const Expr period = (n - Expr(1)) * Expr(2), within = mod(i, period);
  return min(within, period - within);
}

/// The number around a tensor, when it is known.
std::optional<Number> known_surroundings(Context& c) {
  const DType t = c.dtype(0);
  if (c.opset() < 11) return number_of(t, c.real("value", 0));
  if (!c.has(2)) return number_of(t, 0);
  const TensorInfo& v = c.info(2);
  for (size_t k = 0; k < v.dims.size(); ++k) wants_extent(c, 2, k, 1);
  if (!v.constant || t == i64 || t == u64) return std::nullopt;
  return number_of(t, get(v.constant->view(), 0));
}

/// Elements where there are some, else the one element of input 2.
TensorId surrounded(Context& c, const std::vector<Expr>& dims, const Margins& m) {
  Compute made;
  made.operands = {c.in(0)};
  made.axes = dims;
  made.rank = static_cast<int>(dims.size());
  const DType t = c.dtype(0);
  std::vector<Term> at;
  Term inside = constant_int(b1, 1);
  for (size_t k = 0; k < dims.size(); ++k) {
    at.push_back(index(Expr::symbol(axis_symbol(static_cast<int>(k))) - m.before[k]));
    inside = op(Opcode::and_, inside, op(Opcode::le, constant_int(i64, 0), at[k]));
    inside = op(Opcode::and_, inside, op(Opcode::lt, at[k], index(c.info(0).dims[k])));
  }
  const std::vector<Term> first(c.info(2).dims.size(), index(0));
  const int value = made.operand(c.in(2));
  made.body = where(inside, load(0, t, at, number_of(t, 0)), load(value, t, first));
  return c.g.compute(std::move(made), c.name());
}

std::vector<TensorId> pad_of(Context& c) {
  const std::string mode = c.text("mode", "constant");
  const Margins m = margins_of(c);
  const std::vector<Expr> from = c.info(0).dims;
  std::vector<Expr> dims;
  for (size_t k = 0; k < from.size(); ++k)
    dims.push_back(c.g.simple(from[k] + m.before[k] + m.after[k]));
  const bool folds = mode == "reflect" || mode == "edge" || mode == "wrap";
  if (!folds && mode != "constant")
    c.fail("has mode '" + mode + "', wanted constant, reflect, edge or wrap");
  const std::optional<Number> around = folds ? std::nullopt : known_surroundings(c);
  if (!folds && !around) return {surrounded(c, dims, m)};
  return {view(
      c.g, c.name(), c.in(0), dims,
      [&](std::span<const Expr> at) {
        std::vector<Expr> coordinates;
        for (size_t k = 0; k < from.size(); ++k) {
          const Expr i = at[k] - m.before[k];
          const bool plain = m.before[k] == Expr(0) && m.after[k] == Expr(0);
          coordinates.push_back(folds && !plain ? folded_place(mode, i, from[k]) : i);
        }
        return coordinates;
      },
      around)};
}

}  // namespace

std::vector<Operator> padding_operators() {
  const int64_t n = kLatestOpset;
  std::vector<Operator> all = {{"Pad", 1, n, pad_of}};
  for (const Operator& o : resize_operators()) all.push_back(o);
  return all;
}

}  // namespace tw::graph::onnx
