#include "tw/graph/onnx/functions.h"
#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

/// A scale or zero point as a tensor that broadcasts over input 0: one number, one for each element
/// of an axis, or one for each block along it.
TensorId spread_parameter(Context& c, size_t input) {
  const TensorId x = c.in(input);
  const std::vector<Expr> dims = c.g.tensor(x).dims, whole = c.info(0).dims;
  if (dims.empty() || (dims.size() == 1 && dims[0] == Expr(1)))
    return reshape(c.g, c.name(), x, {});
  const int axis = axis_attribute(c, 1, c.rank(0));
  const auto a = static_cast<size_t>(axis);
  const int64_t block = c.integer("block_size", 0);
  if (dims.size() == 1 && block == 0) {
    std::vector<Expr> shape(whole.size(), Expr(1));
    shape[a] = dims[0];
    return reshape(c.g, c.name(), x, shape);
  }
  if (block < 1 || dims.size() != whole.size()) c.fail("has scales that are not of its blocks");
  for (size_t k = 0; k < dims.size(); ++k)
    wants_extent(c, input, k, k == a ? cdiv(whole[k], block) : whole[k]);
  return view(c.g, c.name(), x, whole, [&](std::span<const Expr> at) {
    std::vector<Expr> coordinates(at.begin(), at.end());
    coordinates[a] = floordiv(at[a], block);
    return coordinates;
  });
}

/// A float in the steps of t: to the nearest, within its range.
Term quantized(const Term& steps, const Term& zero, DType t) {
  if (is_float(t)) return cast_saturating(steps, t);
  Term y = op(Opcode::round, steps);
  if (zero) y = op(Opcode::add, y, zero);
  y = op(Opcode::min, op(Opcode::max, y, real(y, lowest(t))), real(y, largest(t)));
  return is_packed(t) ? cast(cast(y, i32), t) : cast(y, t);
}

std::vector<TensorId> quantize_linear(Context& c) {
  const DType t = c.has(2) ? c.dtype(2) : type_named(c, "output_dtype", u8);
  if (!(is_int(t) && bits(t) <= 16) && !is_fp8(t) && t != e2m1) c.fail("makes such elements");
  std::vector<TensorId> all = {c.in(0), spread_parameter(c, 1)};
  if (c.has(2) && is_int(t)) all.push_back(spread_parameter(c, 2));
  return {pointwise(c.g, c.name(), all, [&](std::span<const Term> e) {
    const Term x = cast(e[0], f32), scale = cast(e[1], f32);
    const Term zero = e.size() > 2 ? cast(e[2], f32) : nullptr;
    return quantized(op(Opcode::div, x, scale), zero, t);
  })};
}

std::vector<TensorId> dequantize_linear(Context& c) {
  const DType t = type_named(c, "output_dtype", c.dtype(1));
  std::vector<TensorId> all = {c.in(0), spread_parameter(c, 1)};
  if (c.has(2)) all.push_back(spread_parameter(c, 2));
  return {pointwise(c.g, c.name(), all, [&](std::span<const Term> e) {
    const DType exact = is_float(e[0]->dtype) ? f32 : i32;
    Term x = cast(e[0], exact);
    if (e.size() > 2) x = op(Opcode::sub, x, cast(e[2], exact));
    return cast(op(Opcode::mul, cast(x, f32), cast(e[1], f32)), t);
  })};
}

/// Eight bits over the range of all elements and 0.
std::vector<TensorId> dynamic_quantize_linear(Context& c) {
  const std::vector<int> axes = axes_from(0, c.rank(0));
  const auto extreme = [&](Fold f, Opcode code) {
    Reduction r{.fold = f, .axes = axes, .keep = false};
    r.after = [code](const Term& m) { return op(code, m, real(m, 0)); };
    return reduce(c.g, c.name(), c.in(0), r);
  };
  const TensorId low = extreme(Fold::min, Opcode::min), high = extreme(Fold::max, Opcode::max);
  const TensorId scale = joined(c, low, high, [](const Term& a, const Term& b) {
    return op(Opcode::div, op(Opcode::sub, b, a), real(a, 255));
  });
  const TensorId zero = joined(c, low, scale, [](const Term& a, const Term& s) {
    return quantized(op(Opcode::div, op(Opcode::neg, a), s), nullptr, u8);
  });
  const TensorId y =
      pointwise(c.g, c.name(), std::vector{c.in(0), scale, zero}, [](std::span<const Term> e) {
        return quantized(op(Opcode::div, e[0], e[1]), cast(e[2], f32), u8);
      });
  return {y, scale, zero};
}

}  // namespace

std::vector<Operator> quantize_operators() {
  const int64_t n = kLatestOpset;
  return {
      {"DequantizeLinear", 10, n, dequantize_linear},
      {"DynamicQuantizeLinear", 11, n, dynamic_quantize_linear},
      {"QuantizeLinear", 10, n, quantize_linear},
  };
}

}  // namespace tw::graph::onnx
