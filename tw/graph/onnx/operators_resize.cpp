#include <cmath>
#include <fmt/format.h>

#include "tw/graph/onnx/functions.h"
#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

/// How one axis is resized.
struct AxisResize {
  int axis = 0;
  Expr from, to;
  std::optional<double> scale;  ///< none: to / from
  double start = 0, end = 1;    ///< the region, of tf_crop_and_resize
};

/// What the node says of all axes.
struct Resizing {
  std::string mode, coordinates, nearest;
  double cubic_a = -0.75, extrapolation = 0;
  bool exclude_outside = false;
  std::vector<AxisResize> axes;
};

Term f64_of(const Expr& e) { return cast(index(e), f64); }
Term f64_of(double v) { return constant(f64, v); }
Term sum_of(const Term& a, const Term& b) { return op(Opcode::add, a, b); }
Term times_of(const Term& a, const Term& b) { return op(Opcode::mul, a, b); }
Term quotient_of(const Term& a, const Term& b) { return op(Opcode::div, a, b); }

/// floor(extent * scale)
Expr scaled_extent(Context& c, const Expr& extent, double scale) {
  constexpr int64_t kMostParts = 64;
  if (!(scale > 0 && scale <= static_cast<double>(Graph::kLargestDim)))
    c.fail(
        fmt::format("scales by {}, wanted more than 0 and at most {}", scale, Graph::kLargestDim));
  for (int64_t parts = 1; parts <= kMostParts; ++parts) {
    const double whole = scale * static_cast<double>(parts);
    if (whole == std::floor(whole))
      return c.g.simple(floordiv(extent * Expr(static_cast<int64_t>(whole)), parts));
  }
  const int64_t n = c.g.number(extent, "an extent that " + c.name() + " scales");
  return static_cast<int64_t>(std::floor(static_cast<double>(n) * scale));
}

/// Sizes that keep the ratio of all axes.
void keep_ratio(Context& c, std::vector<AxisResize>& axes, const std::string& policy) {
  if (policy == "stretch") return;
  const bool larger = policy == "not_smaller";
  if (!larger && policy != "not_larger") c.fail("keeps the ratio as '" + policy + "'");
  std::optional<double> scale;
  const auto number = [&](const Expr& e) {
    return static_cast<double>(c.g.number(e, "an extent of " + c.name()));
  };
  for (const AxisResize& a : axes) {
    if (number(a.from) == 0) c.fail("keeps the ratio of an axis without elements");
    const double s = number(a.to) / number(a.from);
    scale = !scale ? s : larger ? std::max(*scale, s) : std::min(*scale, s);
  }
  for (AxisResize& a : axes) {
    a.scale = scale;
    a.to = static_cast<int64_t>(std::floor(number(a.from) * *scale + 0.5));
  }
}

std::vector<AxisResize> resized_axes(Context& c) {
  const bool old = c.opset() < 11;
  const size_t scales_at = old ? 1 : 2;
  std::vector<double> scales;
  if (c.has_attribute("scales"))
    for (float s : c.reals("scales")) scales.push_back(s);
  else if (c.has(scales_at))
    scales = c.values(scales_at);
  const std::vector<Expr> sizes =
      !old && c.has(3) && scales.empty() ? c.contents(3) : std::vector<Expr>();
  std::vector<int64_t> named = c.integers("axes");
  if (named.empty())
    for (int k = 0; k < c.rank(0); ++k) named.push_back(k);
  const size_t n = std::max(scales.size(), sizes.size());
  if (n != named.size()) c.fail(fmt::format("has {} scales or sizes, wanted {}", n, named.size()));
  const bool crops = c.text("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  const std::vector<double> region = crops && c.has(1) ? c.values(1) : std::vector<double>();
  std::vector<AxisResize> axes;
  for (size_t k = 0; k < n; ++k) {
    AxisResize a;
    a.axis = normal_axis(named[k], c.rank(0), "an axis of " + c.name());
    a.from = c.info(0).dims[static_cast<size_t>(a.axis)];
    if (!scales.empty()) a.scale = scales[k];
    a.to = a.scale ? scaled_extent(c, a.from, *a.scale) : sizes[k];
    if (region.size() == 2 * n) a.start = region[k], a.end = region[k + n];
    axes.push_back(a);
  }
  if (!sizes.empty()) keep_ratio(c, axes, c.text("keep_aspect_ratio_policy", "stretch"));
  return axes;
}

/// Where an element of the result lies in the input, as an f64.
Term source_place(Context& c, const Resizing& r, const AxisResize& a) {
  const Term o = f64_of(Expr::symbol(axis_symbol(a.axis)));
  const Term from = f64_of(a.from), to = f64_of(a.to);
  const Term scale = a.scale ? f64_of(*a.scale) : quotient_of(to, from);
  const Term centre = quotient_of(sum_of(o, f64_of(0.5)), scale);
  const Term one_less = sum_of(from, f64_of(-1.0)), steps = sum_of(to, f64_of(-1.0));
  const Term single = op(Opcode::eq, to, f64_of(1.0)), zero = f64_of(0.0);
  const std::string& how = r.coordinates;
  if (how == "asymmetric") return quotient_of(o, scale);
  if (how == "half_pixel") return sum_of(centre, f64_of(-0.5));
  if (how == "tf_half_pixel_for_nn") return centre;
  if (how == "pytorch_half_pixel") return where(single, zero, sum_of(centre, f64_of(-0.5)));
  if (how == "align_corners") {  // by the extent before it is floored
    const Term exact = a.scale ? times_of(scale, from) : to;
    return where(single, zero, quotient_of(times_of(o, one_less), sum_of(exact, f64_of(-1.0))));
  }
  if (how == "half_pixel_symmetric") {
    const Term part = quotient_of(to, times_of(scale, from));
    const Term offset = times_of(times_of(from, f64_of(0.5)), op(Opcode::sub, f64_of(1.0), part));
    return sum_of(offset, sum_of(centre, f64_of(-0.5)));
  }
  if (how != "tf_crop_and_resize") c.fail("has coordinates '" + how + "'");
  const Term step = quotient_of(times_of(f64_of(a.end - a.start), one_less), steps);
  return where(single, times_of(f64_of((a.start + a.end) / 2), one_less),
               sum_of(times_of(f64_of(a.start), one_less), times_of(o, step)));
}

Term rounded_place(Context& c, const std::string& how, const Term& x) {
  if (how == "floor") return op(Opcode::floor, x);
  if (how == "ceil") return op(Opcode::ceil, x);
  if (how == "round_prefer_ceil") return op(Opcode::floor, sum_of(x, f64_of(0.5)));
  if (how != "round_prefer_floor") c.fail("rounds as '" + how + "'");
  return op(Opcode::ceil, sum_of(x, f64_of(-0.5)));
}

/// Whether element o of the result is element o / scale, floored, of the input.
bool repeats_elements(const Resizing& r, const AxisResize& a) {
  if (!a.scale || *a.scale != std::floor(*a.scale) || *a.scale < 1) return false;
  return (r.coordinates == "asymmetric" && r.nearest == "floor") ||
         (r.coordinates == "half_pixel" && r.nearest.starts_with("round"));
}

Term clamped_place(const Term& x, const Expr& n) {
  const Term high = op(Opcode::min, cast(x, i64), index(n - Expr(1)));
  return op(Opcode::max, high, constant_int(i64, 0));
}

/// The weight of an element at distance d (Keys, 1981).
Term cubic_weight(const Term& d, double a) {
  const auto polynomial = [&](double c3, double c2, double c1, double c0) {
    const Term high = sum_of(times_of(f64_of(c3), d), f64_of(c2));
    return sum_of(times_of(sum_of(times_of(high, d), f64_of(c1)), d), f64_of(c0));
  };
  return where(op(Opcode::le, d, f64_of(1.0)), polynomial(a + 2, -(a + 3), 0, 1),
               polynomial(a, -5 * a, 8 * a, -4 * a));
}

/// What the elements near a place give: `element` loads one.
Term interpolated(Context& c, const Resizing& r, const AxisResize& a, const Term& x,
                  const std::function<Term(const Term&)>& element) {
  const Term low = op(Opcode::floor, x);
  const bool cubic = r.mode == "cubic";
  if (!cubic && r.mode != "linear" && r.mode != "bilinear") c.fail("has mode '" + r.mode + "'");
  Term sum, weights;
  for (int k = cubic ? -1 : 0; k <= (cubic ? 2 : 1); ++k) {
    const Term place = sum_of(low, f64_of(static_cast<double>(k)));
    const Term d = op(Opcode::abs, op(Opcode::sub, x, place));
    Term w = cubic ? cubic_weight(d, r.cubic_a) : op(Opcode::sub, f64_of(1.0), d);
    if (r.exclude_outside) {
      const Term inside = op(Opcode::and_, op(Opcode::le, f64_of(0.0), place),
                             op(Opcode::lt, place, f64_of(a.from)));
      w = where(inside, w, f64_of(0.0));
    }
    const Term e = element(clamped_place(place, a.from));
    const Term part = times_of(e, cast(w, e->dtype));
    sum = sum ? sum_of(sum, part) : part;
    weights = weights ? sum_of(weights, w) : w;
  }
  return r.exclude_outside ? quotient_of(sum, cast(weights, sum->dtype)) : sum;
}

/// x with one axis resized.
TensorId resized_along(Context& c, const Resizing& r, const AxisResize& a, TensorId x) {
  const DType t = c.g.tensor(x).dtype;
  Compute made;
  made.operands = {x};
  made.axes = c.g.tensor(x).dims;
  made.axes[static_cast<size_t>(a.axis)] = a.to;
  made.rank = static_cast<int>(made.axes.size());
  const auto element = [&](const Term& place) {
    std::vector<Term> at;
    for (int k = 0; k < made.rank; ++k) at.push_back(k == a.axis ? place : axis(k));
    return load(0, t, at);
  };
  const Term place = source_place(c, r, a);
  if (r.mode == "nearest" && repeats_elements(r, a))
    made.body = element(
        index(floordiv(Expr::symbol(axis_symbol(a.axis)), Expr(static_cast<int64_t>(*a.scale)))));
  else if (r.mode == "nearest")
    made.body = element(clamped_place(rounded_place(c, r.nearest, place), a.from));
  else
    made.body = interpolated(c, r, a, place, element);
  if (r.coordinates == "tf_crop_and_resize") {
    const Term inside = op(Opcode::and_, op(Opcode::le, f64_of(0.0), place),
                           op(Opcode::le, place, sum_of(f64_of(a.from), f64_of(-1.0))));
    made.body = where(inside, made.body, real(made.body, r.extrapolation));
  }
  return c.g.compute(std::move(made), c.name());
}

TensorId resized(Context& c, const Resizing& r) {
  const DType t = c.dtype(0);
  const bool moves = r.mode == "nearest";
  TensorId x = moves ? c.in(0) : converted_to(c, c.in(0), computed_in(t));
  for (const AxisResize& a : r.axes) {
    const bool same = a.from == a.to && (!a.scale || *a.scale == 1);
    if (!same || r.coordinates == "tf_crop_and_resize") x = resized_along(c, r, a, x);
  }
  if (is_float(t) || moves) return converted_to(c, x, t);
  return converted_to(c, mapped(c, x, [](const Term& e) { return op(Opcode::round, e); }), t);
}

std::vector<TensorId> resize(Context& c) {
  if (c.integer("antialias", 0) != 0) c.fail("has antialias = 1, wanted 0");
  Resizing r;
  r.mode = c.text("mode", "nearest");
  r.coordinates =
      c.opset() < 11 ? "asymmetric" : c.text("coordinate_transformation_mode", "half_pixel");
  r.nearest = c.opset() < 11 ? "floor" : c.text("nearest_mode", "round_prefer_floor");
  r.cubic_a = c.real("cubic_coeff_a", -0.75f);
  r.extrapolation = c.real("extrapolation_value", 0);
  r.exclude_outside = c.integer("exclude_outside", 0) != 0;
  r.axes = resized_axes(c);
  return {resized(c, r)};
}

std::vector<TensorId> upsample(Context& c) {
  Resizing r;
  r.mode = c.text("mode", "nearest");
  r.coordinates = "asymmetric";
  r.nearest = "floor";
  r.axes = resized_axes(c);
  return {resized(c, r)};
}

}  // namespace

std::vector<Operator> resize_operators() {
  return {
      {"Resize", 10, kLatestOpset, resize},
      {"Upsample", 7, 9, upsample},
  };
}

}  // namespace tw::graph::onnx
