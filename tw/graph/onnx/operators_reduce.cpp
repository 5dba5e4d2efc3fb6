#include <fmt/format.h>

#include "tw/graph/onnx/functions.h"
#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

using Folded = std::function<Term(const Term&)>;

/// What a reduction of ONNX does: its axes, whether they stay, and the type it computes in.
struct ReductionOf {
  std::vector<int> axes;
  bool keep = true;
};

ReductionOf reduction_of(Context& c) {
  const int rank = c.rank(0);
  ReductionOf r{named_axes(c, 1, "axes", rank), c.integer("keepdims", 1) != 0};
  if (r.axes.empty() && c.integer("noop_with_empty_axes", 0) == 0) r.axes = axes_from(0, rank);
  return r;
}

/// Folds in `t`; before and after are computed there.
TensorId fold_in(Context& c, DType t, Fold fold, const Folded& before = {},
                 const Folded& after = {}) {
  const ReductionOf r = reduction_of(c);
  const DType out = c.dtype(0);
  Reduction x{.fold = fold, .axes = r.axes, .keep = r.keep};
  x.before = [&](const Term& e) { return before ? before(cast(e, t)) : cast(e, t); };
  x.after = [&](const Term& e) { return cast(after ? after(e) : e, out); };
  return reduce(c.g, c.name(), c.in(0), x);
}

Term square(const Term& x) { return op(Opcode::mul, x, x); }
Term root(const Term& x) { return op(Opcode::sqrt, x); }
Term logarithm(const Term& x) { return op(Opcode::log, x); }
Term absolute(const Term& x) { return is_unsigned_int(x->dtype) ? x : op(Opcode::abs, x); }

template <Fold kFold>
std::vector<TensorId> plain_fold(Context& c) {
  const DType t = c.dtype(0);
  return {fold_in(c, t == b1 ? u8 : accumulator(t), kFold)};
}
std::vector<TensorId> reduce_l1(Context& c) {
  return {fold_in(c, accumulator(c.dtype(0)), Fold::sum, absolute)};
}
std::vector<TensorId> reduce_l2(Context& c) {
  return {fold_in(c, computed_in(c.dtype(0)), Fold::sum, square, root)};
}
std::vector<TensorId> reduce_sum_square(Context& c) {
  return {fold_in(c, accumulator(c.dtype(0)), Fold::sum, square)};
}
std::vector<TensorId> reduce_log_sum(Context& c) {
  return {fold_in(c, computed_in(c.dtype(0)), Fold::sum, {}, logarithm)};
}

std::vector<TensorId> reduce_mean(Context& c) {
  const Expr n = count_along(c.g, c.in(0), reduction_of(c).axes);
  const DType t = c.dtype(0);
  const DType sum = is_float(t) ? accumulator(t) : i64;
  return {fold_in(c, sum, Fold::sum, {},
                  [&](const Term& s) { return op(Opcode::div, s, cast(index(n), sum)); })};
}

/// The largest element; 0 instead where it is infinite, so that differences are numbers.
TensorId finite_maximum(Context& c, TensorId x, const std::vector<int>& axes, DType t) {
  Reduction r{.fold = Fold::max, .axes = axes};
  r.before = [&](const Term& e) { return cast(e, t); };
  r.after = [](const Term& m) {
    const Term infinite = op(Opcode::eq, op(Opcode::sub, m, m), real(m, 0));
    return where(infinite, m, real(m, 0));
  };
  return reduce(c.g, c.name(), x, r);
}

std::vector<TensorId> reduce_log_sum_exp(Context& c) {
  const ReductionOf r = reduction_of(c);
  const DType out = c.dtype(0), t = computed_in(out);
  const TensorId x = c.in(0);
  if (r.axes.empty()) return {x};
  const TensorId m = finite_maximum(c, x, r.axes, t);
  const TensorId e = joined(c, x, m, [&](const Term& a, const Term& b) {
    return op(Opcode::exp, op(Opcode::sub, cast(a, t), b));
  });
  const TensorId s = reduce(c.g, c.name(), e, {.axes = r.axes, .after = logarithm});
  const TensorId y = joined(
      c, s, m, [&](const Term& a, const Term& b) { return cast(op(Opcode::add, a, b), out); });
  if (r.keep) return {y};
  std::vector<Expr> dims;
  for (int a = 0; a < c.rank(0); ++a)
    if (std::find(r.axes.begin(), r.axes.end(), a) == r.axes.end())
      dims.push_back(c.info(0).dims[static_cast<size_t>(a)]);
  return {reshape(c.g, c.name(), y, dims)};
}

TensorId place_of_extreme(Context& c, TensorId x, bool most, int axis, bool keep, bool last) {
  Reduction r{.axes = {axis}, .keep = keep};
  r.fold =
      most ? (last ? Fold::last_argmax : Fold::argmax) : (last ? Fold::last_argmin : Fold::argmin);
  return reduce(c.g, c.name(), x, r);
}

template <bool kMost>
std::vector<TensorId> arg_extreme(Context& c) {
  const bool last = c.integer("select_last_index", 0) != 0;
  const bool keep = c.integer("keepdims", 1) != 0;
  return {place_of_extreme(c, c.in(0), kMost, axis_attribute(c, 0, c.rank(0)), keep, last)};
}

/// Before opset 13 all axes from `axis` on were one.
std::vector<int> softmax_axes(Context& c) {
  if (c.opset() >= 13) return {axis_attribute(c, -1, c.rank(0))};
  return axes_from(axis_attribute(c, 1, c.rank(0)), c.rank(0));
}

/// What softmax and its logarithm share: x less the maximum, and the sum of its exponentials.
struct Exponentials {
  TensorId difference, exponential, sum;
};
Exponentials exponentials(Context& c, TensorId x, const std::vector<int>& axes) {
  const DType t = computed_in(c.g.tensor(x).dtype);
  Reduction r{.fold = Fold::max, .axes = axes};
  r.before = [&](const Term& e) { return cast(e, t); };
  const TensorId m = reduce(c.g, c.name(), x, r);
  const TensorId d =
      joined(c, x, m, [&](const Term& a, const Term& b) { return op(Opcode::sub, cast(a, t), b); });
  const TensorId e = mapped(c, d, [](const Term& a) { return op(Opcode::exp, a); });
  return {d, e, reduce(c.g, c.name(), e, {.axes = axes})};
}

std::vector<TensorId> softmax(Context& c) {
  const Exponentials e = exponentials(c, c.in(0), softmax_axes(c));
  return {joined(c, e.exponential, e.sum, [&](const Term& a, const Term& b) {
    return cast(op(Opcode::div, a, b), c.dtype(0));
  })};
}

std::vector<TensorId> log_softmax(Context& c) {
  return {converted_to(c, log_softmax_over(c, c.in(0), softmax_axes(c)), c.dtype(0))};
}

std::vector<TensorId> hardmax(Context& c) {
  const std::vector<int> axes = softmax_axes(c);
  const std::vector<Expr> dims = c.info(0).dims;
  TensorId x = c.in(0);
  int axis = axes[0];
  if (axes.size() > 1) {
    const std::span<const Expr> all(dims);
    const auto first = static_cast<size_t>(axis);
    x = reshape(c.g, c.name(), x,
                {product_of_dims(all.first(first)), product_of_dims(all.subspan(first))});
    axis = 1;
  }
  const TensorId place = place_of_extreme(c, x, true, axis, true, false);
  const TensorId y = joined(c, x, place, [&](const Term& e, const Term& p) {
    return cast(op(Opcode::eq, tw::graph::axis(axis), p), e->dtype);
  });
  return {axes.size() > 1 ? reshape(c.g, c.name(), y, dims) : y};
}

std::vector<TensorId> global_average_pool(Context& c) {
  const std::vector<int> axes = axes_from(2, c.rank(0));
  const DType t = c.dtype(0);
  const Expr n = count_along(c.g, c.in(0), axes);
  Reduction r{.axes = axes};
  r.before = [&](const Term& e) { return cast(e, accumulator(t)); };
  r.after = [&](const Term& s) { return cast(op(Opcode::div, s, cast(index(n), s->dtype)), t); };
  return {reduce(c.g, c.name(), c.in(0), r)};
}

std::vector<TensorId> global_max_pool(Context& c) {
  return {reduce(c.g, c.name(), c.in(0), {.fold = Fold::max, .axes = axes_from(2, c.rank(0))})};
}

std::vector<TensorId> global_lp_pool(Context& c) {
  const auto p = static_cast<double>(c.integer("p", 2));
  const DType t = c.dtype(0);
  Reduction r{.axes = axes_from(2, c.rank(0))};
  r.before = [&](const Term& e) {
    return root_or_power(op(Opcode::abs, cast(e, computed_in(t))), p);
  };
  r.after = [&](const Term& s) { return cast(root_or_power(s, 1 / p), t); };
  return {reduce(c.g, c.name(), c.in(0), r)};
}

std::vector<Operator> fold_operators() {
  const int64_t n = kLatestOpset;
  return {
      {"ArgMax", 1, n, arg_extreme<true>},
      {"ArgMin", 1, n, arg_extreme<false>},
      {"ReduceL1", 1, n, reduce_l1},
      {"ReduceL2", 1, n, reduce_l2},
      {"ReduceLogSum", 1, n, reduce_log_sum},
      {"ReduceLogSumExp", 1, n, reduce_log_sum_exp},
      {"ReduceMax", 1, n, plain_fold<Fold::max>},
      {"ReduceMean", 1, n, reduce_mean},
      {"ReduceMin", 1, n, plain_fold<Fold::min>},
      {"ReduceProd", 1, n, plain_fold<Fold::prod>},
      {"ReduceSum", 1, n, plain_fold<Fold::sum>},
      {"ReduceSumSquare", 1, n, reduce_sum_square},
  };
}

}  // namespace

TensorId log_softmax_over(Context& c, TensorId x, const std::vector<int>& axes) {
  const Exponentials e = exponentials(c, x, axes);
  return joined(c, e.difference, e.sum, [](const Term& a, const Term& b) {
    return op(Opcode::sub, a, op(Opcode::log, b));
  });
}

std::vector<Operator> reduce_operators() {
  const int64_t n = kLatestOpset;
  std::vector<Operator> all = {
      {"GlobalAveragePool", 1, n, global_average_pool},
      {"GlobalLpPool", 2, n, global_lp_pool},
      {"GlobalMaxPool", 1, n, global_max_pool},
      {"Hardmax", 1, n, hardmax},
      {"LogSoftmax", 1, n, log_softmax},
      {"Softmax", 1, n, softmax},
  };
  for (const auto& more : {fold_operators(), normalize_operators(), order_operators()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace tw::graph::onnx
