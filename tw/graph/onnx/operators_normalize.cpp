#include <fmt/format.h>

#include "tw/graph/onnx/functions.h"
#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

/// Mean of elements over axes, in f32 or wider.
TensorId mean_over(Context& c, TensorId x, const std::vector<int>& axes) {
  const Expr n = count_along(c.g, x, axes);
  const DType t = computed_in(c.g.tensor(x).dtype);
  Reduction r{.axes = axes};
  r.before = [&](const Term& e) { return cast(e, t); };
  r.after = [&](const Term& s) { return op(Opcode::div, s, cast(index(n), t)); };
  return reduce(c.g, c.name(), x, r);
}

/// Mean of squares over axes.
TensorId mean_square(Context& c, TensorId x, const std::vector<int>& axes) {
  return mean_over(c, mapped(c, x, [](const Term& e) { return op(Opcode::mul, e, e); }), axes);
}

TensorId less_mean(Context& c, TensorId x, TensorId mean) {
  return joined(c, x, mean,
                [](const Term& a, const Term& m) { return op(Opcode::sub, cast(a, m->dtype), m); });
}

/// 1 over the root of x plus epsilon.
TensorId inverse_root(Context& c, TensorId x, double epsilon) {
  return mapped(c, x, [&](const Term& v) {
    return op(Opcode::div, real(v, 1), op(Opcode::sqrt, op(Opcode::add, v, real(v, epsilon))));
  });
}

/// Elements less their mean, the mean, the variance, and 1 over the root of it plus epsilon.
struct Standard {
  TensorId difference, mean, variance, inverse;
};
Standard standardised(Context& c, TensorId x, const std::vector<int>& axes, double epsilon) {
  Standard s{};
  s.mean = mean_over(c, x, axes);
  s.difference = less_mean(c, x, s.mean);
  s.variance = mean_square(c, s.difference, axes);
  s.inverse = inverse_root(c, s.variance, epsilon);
  return s;
}

/// difference * inverse * scale + bias, in the type of the first input; no scale, no bias: -1.
TensorId scaled_standard(Context& c, const Standard& s, TensorId scale, TensorId bias) {
  std::vector<TensorId> all = {s.difference, s.inverse};
  if (scale >= 0) all.push_back(scale);
  if (bias >= 0) all.push_back(bias);
  return pointwise(c.g, c.name(), all, [&](std::span<const Term> e) {
    Term y = op(Opcode::mul, e[0], e[1]);
    if (scale >= 0) y = op(Opcode::mul, y, cast(e[2], y->dtype));
    if (bias >= 0) y = op(Opcode::add, y, cast(e.back(), y->dtype));
    return cast(y, c.dtype(0));
  });
}

std::vector<TensorId> layer_normalization(Context& c) {
  const int rank = c.rank(0);
  const std::vector<int> axes = axes_from(axis_attribute(c, -1, rank), rank);
  const Standard s = standardised(c, c.in(0), axes, c.real("epsilon", 1e-5f));
  std::vector<TensorId> out = {scaled_standard(c, s, c.in(1), c.has(2) ? c.in(2) : -1)};
  out.push_back(s.mean);
  out.push_back(s.inverse);
  return out;
}

std::vector<TensorId> rms_normalization(Context& c) {
  const int rank = c.rank(0);
  const std::vector<int> axes = axes_from(axis_attribute(c, -1, rank), rank);
  const double epsilon = c.real("epsilon", 1e-5f);
  const DType t = computed_in(c.dtype(0));
  const TensorId x = converted_to(c, c.in(0), t);
  const TensorId inverse = inverse_root(c, mean_square(c, x, axes), epsilon);
  return {scaled_standard(c, {x, -1, -1, inverse}, c.in(1), -1)};
}

std::vector<TensorId> instance_normalization(Context& c) {
  const int rank = c.rank(0);
  const Standard s = standardised(c, c.in(0), axes_from(2, rank), c.real("epsilon", 1e-5f));
  return {
      scaled_standard(c, s, along_channels(c, c.in(1), rank), along_channels(c, c.in(2), rank))};
}

std::vector<TensorId> group_normalization(Context& c) {
  const std::vector<Expr> dims = c.info(0).dims;
  const int rank = c.rank(0);
  const int64_t groups = c.integer("num_groups", 0);
  if (groups < 1 || rank < 2) c.fail("has no groups of channels");
  const Expr each = quotient_of_dims(c.g, std::vector{dims[1]}, std::vector{Expr(groups)});
  std::vector<Expr> grouped = {dims[0], groups, each};
  grouped.insert(grouped.end(), dims.begin() + 2, dims.end());
  const TensorId x = reshape(c.g, c.name(), c.in(0), grouped);
  const Standard s = standardised(c, x, axes_from(2, rank + 1), c.real("epsilon", 1e-5f));
  // Before opset 21 scale and bias were of groups.
  const auto placed = [&](size_t input) {
    std::vector<Expr> shape(static_cast<size_t>(rank), Expr(1));
    shape[0] = groups;
    if (c.opset() >= 21) shape[1] = each;
    return reshape(c.g, c.name(), c.in(input), shape);
  };
  return {reshape(c.g, c.name(), scaled_standard(c, s, placed(1), placed(2)), dims)};
}

/// What an input of channels becomes when it moves towards a figure of this batch.
TensorId moved_towards(Context& c, size_t input, TensorId figure) {
  const TensorId now = reshape(c.g, c.name(), figure, c.info(input).dims);
  const double momentum = c.real("momentum", 0.9f);
  return joined(c, c.in(input), now, [&](const Term& before, const Term& f) {
    const DType t = computed_in(before->dtype);
    const Term stays = op(Opcode::mul, cast(before, t), constant(t, momentum));
    const Term comes = op(Opcode::mul, cast(f, t), constant(t, 1 - momentum));
    return cast(op(Opcode::add, stays, comes), before->dtype);
  });
}

/// By mean and variance of the batch; gives what the running ones become, too.
std::vector<TensorId> normalized_by_batch(Context& c) {
  const int rank = c.rank(0);
  std::vector<int> axes = axes_from(2, rank);
  axes.insert(axes.begin(), 0);
  const Standard s = standardised(c, c.in(0), axes, c.real("epsilon", 1e-5f));
  const TensorId scale = along_channels(c, c.in(1), rank), bias = along_channels(c, c.in(2), rank);
  return {scaled_standard(c, s, scale, bias), moved_towards(c, 3, s.mean),
          moved_towards(c, 4, s.variance)};
}

std::vector<TensorId> batch_normalization(Context& c) {
  if (c.integer("spatial", 1) != 1) c.fail("has spatial = 0, wanted 1");
  const int rank = c.rank(0);
  if (rank < 1) c.fail("wants an axis or more");
  const Expr channels = rank > 1 ? c.info(0).dims[1] : Expr(1);
  for (size_t i = 1; i < 5; ++i) wants_rank(c, i, 1), wants_extent(c, i, 0, channels);
  if (c.integer("training_mode", 0) != 0) return normalized_by_batch(c);
  const double epsilon = c.real("epsilon", 1e-5f);
  std::vector<TensorId> all = {c.in(0)};
  for (size_t i = 1; i < 5; ++i) all.push_back(along_channels(c, c.in(i), rank));
  return {pointwise(c.g, c.name(), all, [&](std::span<const Term> e) {
    const DType t = computed_in(e[0]->dtype);
    const auto wide = [&](size_t k) { return cast(e[k], t); };
    const Term deviation = op(Opcode::sqrt, op(Opcode::add, wide(4), constant(t, epsilon)));
    const Term slope = op(Opcode::div, wide(1), deviation);
    const Term y = op(Opcode::mul, op(Opcode::sub, wide(0), wide(3)), slope);
    return cast(op(Opcode::add, y, wide(2)), e[0]->dtype);
  })};
}

std::vector<TensorId> lp_normalization(Context& c) {
  const int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) c.fail(fmt::format("has p = {}, wanted 1 or 2", p));
  const DType t = computed_in(c.dtype(0));
  Reduction r{.axes = {axis_attribute(c, -1, c.rank(0))}};
  r.before = [&](const Term& e) {
    const Term x = cast(e, t);
    return p == 1 ? op(Opcode::abs, x) : op(Opcode::mul, x, x);
  };
  r.after = [&](const Term& s) { return p == 1 ? s : op(Opcode::sqrt, s); };
  const TensorId norm = reduce(c.g, c.name(), c.in(0), r);
  return {joined(c, c.in(0), norm, [&](const Term& x, const Term& n) {
    const Term zero = real(n, 0), nothing = op(Opcode::eq, n, zero);
    return cast(where(nothing, zero, op(Opcode::div, cast(x, t), n)), x->dtype);
  })};
}

std::vector<TensorId> mean_variance_normalization(Context& c) {
  std::vector<int> axes = named_axes(c, 1, "axes", c.rank(0));
  if (axes.empty() && c.rank(0) < 4) c.fail("wants axes, or a tensor of four");
  if (axes.empty()) axes = {0, 2, 3};
  const TensorId d = less_mean(c, c.in(0), mean_over(c, c.in(0), axes));
  return {joined(c, d, mean_square(c, d, axes), [&](const Term& e, const Term& v) {
    const Term deviation = op(Opcode::add, op(Opcode::sqrt, v), real(v, 1e-9));
    return cast(op(Opcode::div, e, deviation), c.dtype(0));
  })};
}

/// x / (bias + alpha / size * (squares of neighbouring channels))^beta
std::vector<TensorId> local_response_normalization(Context& c) {
  const int64_t size = c.integer("size", 0);
  if (size < 1 || c.rank(0) < 2) c.fail("has no channels to sum");
  const double alpha = c.real("alpha", 1e-4f), beta = c.real("beta", 0.75f);
  const double bias = c.real("bias", 1);
  const DType t = computed_in(c.dtype(0));
  Compute sum;
  sum.operands = {c.in(0)};
  sum.axes = c.info(0).dims;
  sum.rank = c.rank(0);
  sum.axes.emplace_back(size);
  std::vector<Term> at = axis_terms(sum.rank);
  at[1] = index(Expr::symbol(axis_symbol(1)) + Expr::symbol(axis_symbol(sum.rank)) -
                Expr((size - 1) / 2));
  const Term x = cast(load(0, c.dtype(0), at, number_of(c.dtype(0), 0)), t);
  sum.fold = Fold::sum;
  sum.body = op(Opcode::mul, x, x);
  const TensorId squares = c.g.compute(std::move(sum), c.name());
  return {joined(c, c.in(0), squares, [&](const Term& e, const Term& s) {
    const Term scaled = op(Opcode::mul, s, real(s, alpha / static_cast<double>(size)));
    const Term base = cast(op(Opcode::add, scaled, real(s, bias)), f64);
    const Term p = cast(power(base, constant(f64, beta)), t);
    return cast(op(Opcode::div, cast(e, t), p), e->dtype);
  })};
}

}  // namespace

std::vector<Operator> normalize_operators() {
  const int64_t n = kLatestOpset;
  return {
      {"BatchNormalization", 7, n, batch_normalization},
      {"GroupNormalization", 18, n, group_normalization},
      {"InstanceNormalization", 6, n, instance_normalization},
      {"LRN", 1, n, local_response_normalization},
      {"LayerNormalization", 17, n, layer_normalization},
      {"LpNormalization", 1, n, lp_normalization},
      {"MeanVarianceNormalization", 9, n, mean_variance_normalization},
      {"RMSNormalization", 23, n, rms_normalization},
  };
}

}  // namespace tw::graph::onnx
