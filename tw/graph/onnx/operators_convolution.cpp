#include <fmt/format.h>

#include "tw/graph/onnx/operators.h"
#include "tw/graph/onnx/window.h"

namespace tw::graph::onnx {

namespace {

const Expr& axis_of(std::span<const Expr> axes, int k) { return axes[static_cast<size_t>(k)]; }

using Exprs = std::vector<Expr>;

std::vector<int64_t> kernel_of_weights(Context& c) {
  std::vector<int64_t> kernel;
  for (const Expr& e : spatial_dims(c, 1))
    kernel.push_back(c.g.number(e, "an extent of the window of " + c.name()));
  return kernel;
}

/// What a convolution sums, and how many groups its channels are in.
struct ConvolutionDims {
  Window w;
  int64_t groups = 1;
  Expr channels, results;  // of a group
};

int64_t groups_of(const Context& c) {
  const int64_t groups = c.integer("group", 1);
  if (groups < 1) c.fail("has no groups");
  return groups;
}

/// The extent of weights that each group has a part of.
Expr part_of_group(Context& c, const Expr& extent, const Expr& groups) {
  const Expr part = quotient_of_dims(c.g, std::vector{extent}, std::vector{groups});
  if (!c.g.same(part * groups, extent, c.name()))
    c.fail("has weights that its groups do not divide");
  return part;
}

ConvolutionDims convolution_dims(Context& c) {
  ConvolutionDims d{window_of(c, kernel_of_weights(c), spatial_dims(c, 0)), groups_of(c),
                    c.info(1).dims[1], 1};
  const Expr all = c.info(0).dims[1], groups = d.groups;
  if (!c.g.same(all, d.channels * groups, c.name()))
    c.fail(fmt::format("has {} channels, wanted {}", c.g.text(all),
                       c.g.text(c.g.simple(d.channels * groups))));
  d.results = part_of_group(c, c.info(1).dims[0], groups);
  return d;
}

/// Axes: n, group where there are several, result of the group, positions; then channel of the
/// group, window.
Contraction convolution(const ConvolutionDims& d, const Expr& images) {
  const bool grouped = d.groups > 1;
  const int n = d.w.axes(), first = grouped ? 3 : 2;  // of the positions
  Contraction x;
  x.result = {images, d.results};
  if (grouped) x.result.insert(x.result.begin() + 1, d.groups);
  x.result.insert(x.result.end(), d.w.out.begin(), d.w.out.end());
  x.summed.assign(d.w.kernel.begin(), d.w.kernel.end());
  x.summed.insert(x.summed.begin(), d.channels);
  const auto in_window = [=](std::span<const Expr> i, int k) {
    return axis_of(i, first + n + 1 + k);
  };
  const auto channel = [=](std::span<const Expr> i) { return axis_of(i, first + n); };
  x.a = [=, &d](std::span<const Expr> i) {
    Exprs at = {i[0], grouped ? i[1] * d.channels + channel(i) : channel(i)};
    for (int k = 0; k < n; ++k) at.push_back(d.w.place(k, axis_of(i, first + k), in_window(i, k)));
    return at;
  };
  x.b = [=, &d](std::span<const Expr> i) {
    Exprs at = {grouped ? i[1] * d.results + i[2] : i[1], channel(i)};
    for (int k = 0; k < n; ++k) at.push_back(in_window(i, k));
    return at;
  };
  return x;
}

/// Groups and their results become channels; a bias of channels is added; narrow floats are cut.
TensorId finished_convolution(Context& c, TensorId y, const Exprs& dims) {
  if (c.g.tensor(y).dims.size() != dims.size()) y = reshape(c.g, c.name(), y, dims);
  const DType t = c.dtype(0);
  if (!c.has(2)) return converted_to(c, y, t);
  return joined(c, y, along_channels(c, c.in(2), c.rank(0)), [&](const Term& s, const Term& b) {
    return cast(op(Opcode::add, s, cast(b, s->dtype)), t);
  });
}

std::vector<TensorId> conv(Context& c) {
  const ConvolutionDims d = convolution_dims(c);
  Contraction x = convolution(d, c.info(0).dims[0]);
  const DType t = c.dtype(0);
  if (!d.w.inside) x.pad_a = number_of(t, 0);
  x.after = [](const Term& s) { return s; };
  const TensorId y = contract(c.g, c.name(), c.in(0), c.in(1), x);
  Exprs dims = {c.info(0).dims[0], c.info(1).dims[0]};
  dims.insert(dims.end(), d.w.out.begin(), d.w.out.end());
  return {finished_convolution(c, y, dims)};
}

/// Sums of integers less their zero points: the padding is the zero point, so that it counts 0.
std::vector<TensorId> conv_integer(Context& c) {
  const auto less_zero = [&](size_t input, size_t zero) {
    if (!c.has(zero)) return converted_to(c, c.in(input), i32);
    TensorId z = c.in(zero);
    const Exprs dims = c.g.tensor(z).dims;
    if (dims.size() == 1) {
      Exprs shape(static_cast<size_t>(c.rank(input)), Expr(1));
      shape[0] = input == 1 ? dims[0] : Expr(1);
      z = reshape(c.g, c.name(), z, shape);
    }
    return joined(c, c.in(input), z, [](const Term& a, const Term& b) {
      return op(Opcode::sub, cast(a, i32), cast(b, i32));
    });
  };
  const ConvolutionDims d = convolution_dims(c);
  Contraction x = convolution(d, c.info(0).dims[0]);
  if (!d.w.inside) x.pad_a = number_of(i32, 0);
  const TensorId y = contract(c.g, c.name(), less_zero(0, 2), less_zero(1, 3), x);
  Exprs dims = {c.info(0).dims[0], c.info(1).dims[0]};
  dims.insert(dims.end(), d.w.out.begin(), d.w.out.end());
  return {c.g.tensor(y).dims.size() == dims.size() ? y : reshape(c.g, c.name(), y, dims)};
}

/// A transposed convolution: the window moves over the result, and in has what it is moved by.
struct TransposedWindow {
  Window w;  // its `in` are the results, its `out` the positions: the extents of the input
  std::vector<Expr> results;
};

TransposedWindow transposed_window(Context& c) {
  const Exprs positions = spatial_dims(c, 0);
  const size_t n = positions.size();
  TransposedWindow t{steps_of(c, kernel_of_weights(c), n), {}};
  Window& w = t.w;
  w.out = positions;
  const std::vector<int64_t> pads = per_axis(c, "pads", 2 * n, 0);
  const std::vector<int64_t> more = per_axis(c, "output_padding", n, 0);
  std::vector<int64_t> shape = c.integers("output_shape");
  if (!shape.empty()) shape = per_axis(c, "output_shape", n, 0);
  const std::string how = c.text("auto_pad", "NOTSET");
  const bool same = how == "SAME_UPPER" || how == "SAME_LOWER";
  if (!same && how != "NOTSET" && how != "VALID") c.fail("has auto_pad '" + how + "'");
  for (size_t a = 0; a < n; ++a) {
    const Expr whole =
        (w.out[a] - Expr(1)) * Expr(w.stride[a]) + Expr(w.span(static_cast<int>(a)) + more[a]);
    Expr before = how == "VALID" ? 0 : pads[a], after = how == "VALID" ? 0 : pads[a + n];
    if (same || !shape.empty()) {
      const Expr wanted = shape.empty() ? w.out[a] * Expr(w.stride[a]) : Expr(shape[a]);
      const Expr all = max(whole - wanted, Expr(0)), less = floordiv(all, 2);
      before = how == "SAME_UPPER" ? less : all - less;
      after = whole - wanted - before;
    }
    w.before.push_back(c.g.simple(before));
    t.results.push_back(c.g.simple(whole - before - after));
  }
  return t;
}

std::vector<TensorId> conv_transpose(Context& c) {
  const TransposedWindow t = transposed_window(c);
  const int n = t.w.axes();
  const Expr groups = groups_of(c);
  const Exprs weights = c.info(1).dims;
  const Expr channels = part_of_group(c, weights[0], groups);
  wants_extent(c, 0, 1, weights[0]);
  Compute made;
  made.operands = {c.in(0)};
  const int filter = made.operand(c.in(1));
  made.axes = {c.info(0).dims[0], groups, weights[1]};
  made.axes.insert(made.axes.end(), t.results.begin(), t.results.end());
  made.rank = 3 + n;
  made.axes.push_back(channels);
  made.axes.insert(made.axes.end(), weights.begin() + 2, weights.end());
  const auto at = [](int k) { return Expr::symbol(axis_symbol(k)); };
  const Term channel = index(at(1) * channels + at(made.rank));
  std::vector<Term> x = {axis(0), channel}, w = {channel, axis(2)};
  const DType dtype = c.dtype(0), sum = accumulator(dtype);
  Term hit;  // whether the window lies where the stride puts it
  for (int k = 0; k < n; ++k) {
    const auto a = static_cast<size_t>(k);
    const Expr offset = at(3 + k) + t.w.before[a] - at(made.rank + 1 + k) * Expr(t.w.dilation[a]);
    x.push_back(index(floordiv(offset, t.w.stride[a])));
    w.push_back(axis(made.rank + 1 + k));
    if (t.w.stride[a] == 1) continue;
    const Term here = op(Opcode::eq, index(mod(offset, t.w.stride[a])), constant_int(i64, 0));
    hit = hit ? op(Opcode::and_, hit, here) : here;
  }
  const Term element = cast(load(0, dtype, x, number_of(dtype, 0)), sum);
  made.fold = Fold::sum;
  made.body = op(Opcode::mul, hit ? where(hit, element, constant(sum, 0.0)) : element,
                 cast(load(filter, c.dtype(1), w), sum));
  Exprs dims = {c.info(0).dims[0], c.g.simple(groups * weights[1])};
  dims.insert(dims.end(), t.results.begin(), t.results.end());
  return {finished_convolution(c, c.g.compute(std::move(made), c.name()), dims)};
}

}  // namespace

std::vector<Operator> convolution_operators() {
  const int64_t n = kLatestOpset;
  return {
      {"Conv", 1, n, conv},
      {"ConvInteger", 10, n, conv_integer},
      {"ConvTranspose", 1, n, conv_transpose},
  };
}

}  // namespace tw::graph::onnx
