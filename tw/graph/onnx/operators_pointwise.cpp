#include <cmath>
#include <limits>

#include "tw/graph/onnx/functions.h"
#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

using Outputs = std::vector<TensorId>;
using UnaryTerm = Term (*)(const Term&);
using BinaryTerm = Term (*)(const Term&, const Term&);

template <UnaryTerm F>
Outputs each(Context& c) {
  return {mapped(c, c.in(0), F)};
}
template <UnaryTerm F>
Outputs each_in_f32(Context& c) {
  return {mapped(c, c.in(0), [](const Term& x) { return in_f32(x, F); })};
}
template <UnaryTerm F>
Outputs each_in_f64(Context& c) {
  return {mapped(c, c.in(0), [](const Term& x) { return in_f64(x, F); })};
}
template <Opcode kCode>
Term one_op(const Term& x) {
  return op(kCode, x);
}
template <Opcode kCode>
Term two_op(const Term& a, const Term& b) {
  return op(kCode, a, b);
}
template <BinaryTerm F>
Outputs pairwise(Context& c) {
  return {joined(c, c.in(0), c.in(1), F)};
}

Term reciprocal(const Term& x) { return op(Opcode::div, real(x, 1), x); }
Term softsign(const Term& x) {
  return op(Opcode::div, x, op(Opcode::add, real(x, 1), op(Opcode::abs, x)));
}
Term hard_swish(const Term& x) {
  const Term sixth = op(Opcode::add, op(Opcode::mul, x, real(x, 1.0 / 6)), constant(x->dtype, 0.5));
  return op(Opcode::mul, x, op(Opcode::max, real(x, 0), op(Opcode::min, real(x, 1), sixth)));
}
Term mish(const Term& x) { return op(Opcode::mul, x, op(Opcode::tanh, softplus(x))); }
Term rectified(const Term& x) { return op(Opcode::max, x, real(x, 0)); }

/// A function of an element in f32 or wider.
Outputs each_with(Context& c, const std::function<Term(const Term&)>& f) {
  return {mapped(c, c.in(0),
                 [&](const Term& e) { return cast(f(cast(e, computed_in(e->dtype))), e->dtype); })};
}

/// x above 0, f of it elsewhere.
Term else_below(const Term& x, const Term& below) {
  return where(op(Opcode::lt, x, real(x, 0)), below, x);
}

Outputs leaky_relu(Context& c) {
  const double alpha = c.real("alpha", 0.01f);
  return each_with(
      c, [&](const Term& x) { return else_below(x, op(Opcode::mul, x, real(x, alpha))); });
}

Outputs elu(Context& c) {
  const double alpha = c.real("alpha", 1);
  return each_with(c, [&](const Term& x) {
    return else_below(x, op(Opcode::mul, expm1_below(x), real(x, alpha)));
  });
}

Outputs celu(Context& c) {
  const double alpha = c.real("alpha", 1);
  return each_with(c, [&](const Term& x) {
    const Term part = expm1_below(op(Opcode::div, x, real(x, alpha)));
    return else_below(x, op(Opcode::mul, part, real(x, alpha)));
  });
}

Outputs selu(Context& c) {
  const double alpha = c.real("alpha", 1.67326319217681884765625f);
  const double gamma = c.real("gamma", 1.05070102214813232421875f);
  return each_with(c, [&](const Term& x) {
    const Term y = else_below(x, op(Opcode::mul, expm1_below(x), real(x, alpha)));
    return op(Opcode::mul, y, real(x, gamma));
  });
}

Outputs thresholded_relu(Context& c) {
  const double alpha = c.real("alpha", 1);
  return each_with(c,
                   [&](const Term& x) { return where(greater(x, real(x, alpha)), x, real(x, 0)); });
}

Outputs shrink(Context& c) {
  const double bias = c.real("bias", 0), edge = c.real("lambd", 0.5f);
  return each_with(c, [&](const Term& x) {
    const Term low = op(Opcode::add, x, real(x, bias)), high = op(Opcode::sub, x, real(x, bias));
    const Term middle = where(greater(x, real(x, edge)), high, real(x, 0));
    return where(op(Opcode::lt, x, real(x, -edge)), low, middle);
  });
}

Outputs hard_sigmoid(Context& c) {
  const double alpha = c.real("alpha", 0.2f), beta = c.real("beta", 0.5f);
  return each_with(c, [&](const Term& x) {
    const Term line = op(Opcode::add, op(Opcode::mul, x, real(x, alpha)), real(x, beta));
    return op(Opcode::max, real(x, 0), op(Opcode::min, real(x, 1), line));
  });
}

Outputs gelu_of(Context& c) {
  const std::string how = c.text("approximate", "none");
  if (how != "none" && how != "tanh") c.fail("approximates by '" + how + "', wanted none or tanh");
  return how == "tanh" ? each_in_f32<gelu_tanh>(c) : each_in_f32<gelu>(c);
}

Outputs swish(Context& c) {
  const double alpha = c.real("alpha", 1);
  return each_with(c, [&](const Term& x) {
    return op(Opcode::mul, x, sigmoid(op(Opcode::mul, x, real(x, alpha))));
  });
}

Outputs prelu(Context& c) {
  return {joined(c, c.in(0), c.in(1), [](const Term& x, const Term& slope) {
    const Term below = op(Opcode::mul, x, slope);
    return is_unsigned_int(x->dtype) ? x : else_below(x, below);
  })};
}

Outputs clip(Context& c) {
  const TensorId x = c.in(0);
  if (c.opset() < 11) {
    const double most = std::numeric_limits<float>::max();
    const double low = c.real("min", static_cast<float>(-most));
    const double high = c.real("max", static_cast<float>(most));
    return each_with(c, [&](const Term& e) {
      const Term above = low == -most ? e : op(Opcode::max, e, real(e, low));
      return high == most ? above : op(Opcode::min, above, real(e, high));
    });
  }
  std::vector<TensorId> all = {x};
  if (c.has(1)) all.push_back(c.in(1));
  if (c.has(2)) all.push_back(c.in(2));
  return {pointwise(c.g, c.name(), all, [&](std::span<const Term> e) {
    Term y = e[0];
    if (c.has(1)) y = op(Opcode::max, y, e[1]);
    if (c.has(2)) y = op(Opcode::min, y, e.back());
    return y;
  })};
}

/// Folds all inputs by an op, in f32 of narrower floats; `after` maps the result.
template <Opcode kCode>
TensorId folded_inputs(Context& c, bool mean = false) {
  return pointwise(c.g, c.name(), all_inputs(c), [&](std::span<const Term> e) {
    const DType t = e[0]->dtype;
    Term y = cast(e[0], accumulator(t));
    for (const Term& x : e.subspan(1)) y = op(kCode, y, cast(x, accumulator(t)));
    if (mean) y = op(Opcode::div, y, real(y, static_cast<double>(e.size())));
    return cast(y, t);
  });
}
template <Opcode kCode>
Outputs fold_of_inputs(Context& c) {
  return {folded_inputs<kCode>(c)};
}
Outputs mean_of_inputs(Context& c) { return {folded_inputs<Opcode::add>(c, true)}; }

Term greater_or_equal(const Term& a, const Term& b) { return op(Opcode::le, b, a); }

/// What is left of whole multiples of b, with the sign of b.
Term float_modulo(const Term& a, const Term& b) {
  const Term r = float_remainder(a, b), zero = real(r, 0);
  const Term below = op(Opcode::lt, b, zero), nothing = op(Opcode::eq, r, zero);
  const Term other = op(Opcode::xor_, op(Opcode::lt, r, zero), below);
  const Term signed_zero = where(below, real(r, -0.0), zero);
  return where(nothing, signed_zero, where(other, op(Opcode::add, r, b), r));
}

Outputs modulo(Context& c) {
  const bool truncates = c.integer("fmod", 0) != 0;
  return {joined(c, c.in(0), c.in(1), [&](const Term& a, const Term& b) {
    if (is_float(a->dtype)) {
      const Term x = cast(a, f64), y = cast(b, f64);
      return cast(truncates ? float_remainder(x, y) : float_modulo(x, y), a->dtype);
    }
    const Term r = op(Opcode::rem, a, b), zero = real(r, 0);
    if (truncates || !is_signed_int(a->dtype)) return r;
    const Term other = op(Opcode::lt, op(Opcode::xor_, r, b), zero);  // signs differ
    const Term mend = op(Opcode::and_, other, op(Opcode::ne, r, zero));
    return where(mend, op(Opcode::add, r, b), r);
  })};
}

/// x^n for n >= 1.
Term short_power(const Term& x, int n) {
  Term p = x;
  for (int k = 1; k < n; ++k) p = op(Opcode::mul, p, x);
  return p;
}

Term power_of(const Term& x, const Term& y) {
  const DType t = x->dtype;
  if (!is_float(t) && !is_float(y->dtype)) {
    // In 64 bits wraps to the same as in t.
    return cast(integer_power(cast(x, i64), cast(y, i64)), t);
  }
  const Term p = power(cast(x, f64), cast(y, f64));
  if (is_float(t)) return cast(p, t);
  const Term whole = op(Opcode::eq, op(Opcode::floor, cast(y, f64)), cast(y, f64));
  return cast(where(whole, op(Opcode::round, p), p), t);
}

Outputs pow_of(Context& c) {
  const TensorInfo& y = c.info(1);
  if (y.constant && y.constant->count() == 1 && is_float(c.dtype(0))) {
    const double exponent = get(y.constant->view(), 0);
    // Small whole powers of floats are products.
    if (exponent == 1 || exponent == 2 || exponent == 3) {
      return {joined(c, c.in(0), c.in(1), [&](const Term& x, const Term&) {
        return cast(short_power(cast(x, computed_in(x->dtype)), static_cast<int>(exponent)),
                    x->dtype);
      })};
    }
  }
  return pairwise<power_of>(c);
}

Outputs where_of(Context& c) {
  return {pointwise(c.g, c.name(), std::vector{c.in(0), c.in(1), c.in(2)},
                    [](std::span<const Term> e) { return where(e[0], e[1], e[2]); })};
}

/// To powers of two: up, down, or as the tile language rounds.
Term cast_to_power(const Term& x, const std::string& how) {
  const Term nearest = cast(cast(x, e8m0), f32), same = cast(x, f32);
  const Term up =
      where(op(Opcode::lt, nearest, same), op(Opcode::mul, nearest, real(nearest, 2)), nearest);
  const Term down =
      where(greater(nearest, same), op(Opcode::mul, nearest, real(nearest, 0.5)), nearest);
  return cast(how == "up" ? up : how == "down" ? down : nearest, e8m0);
}

Term converted(Context& c, const Term& e, DType t) {
  if (e->dtype == t) return e;
  const bool from_float = is_float(e->dtype);
  const Term x = only_stores(e->dtype) ? cast(e, from_float ? f32 : i32) : e;
  if (is_fp8(t) && c.integer("saturate", 1) != 0)  // the default of ONNX
    return cast_saturating(from_float ? x : cast(x, f32), t);
  if (t == e8m0) return cast_to_power(x, c.text("round_mode", "up"));
  if (t == e2m1 && from_float) return cast(where(is_nan(x), real(x, -0.0), x), t);
  if (is_int(t) && is_packed(t) && from_float) return cast(cast(x, i32), t);  // wraps
  return cast(x, t);
}

TensorId cast_to(Context& c, DType t) {
  return mapped(c, c.in(0), [&](const Term& x) { return converted(c, x, t); });
}
Outputs cast_of(Context& c) { return {cast_to(c, type_named(c, "to", f32))}; }
Outputs cast_like(Context& c) { return {cast_to(c, c.dtype(1))}; }

Outputs is_inf(Context& c) {
  const bool low = c.integer("detect_negative", 1) != 0;
  const bool high = c.integer("detect_positive", 1) != 0;
  return {mapped(c, c.in(0), [&](const Term& x) {
    const double infinity = std::numeric_limits<double>::infinity();
    const Term none = constant_int(b1, 0);
    const Term below = low ? op(Opcode::eq, x, real(x, -infinity)) : none;
    const Term above = high ? op(Opcode::eq, x, real(x, infinity)) : none;
    return op(Opcode::or_, below, above);
  })};
}

Outputs bit_shift(Context& c) {
  const std::string way = c.text("direction", "");
  if (way != "LEFT" && way != "RIGHT") c.fail("shifts '" + way + "', wanted LEFT or RIGHT");
  return way == "LEFT" ? pairwise<two_op<Opcode::shl>>(c) : pairwise<two_op<Opcode::shr>>(c);
}

Outputs identity(Context& c) { return {c.in(0)}; }

std::vector<Operator> unary_operators() {
  const int64_t n = kLatestOpset;
  return {
      {"Abs", 1, n, each<one_op<Opcode::abs>>},
      {"Acos", 7, n, each_in_f64<acos>},
      {"Acosh", 9, n, each_in_f64<acosh>},
      {"Asin", 7, n, each_in_f64<asin>},
      {"Asinh", 9, n, each_in_f64<asinh>},
      {"Atan", 7, n, each_in_f64<atan>},
      {"Atanh", 9, n, each_in_f64<atanh>},
      {"BitwiseNot", 18, n, each<one_op<Opcode::not_>>},
      {"Ceil", 1, n, each<one_op<Opcode::ceil>>},
      {"Cos", 7, n, each<one_op<Opcode::cos>>},
      {"Cosh", 9, n, each_in_f64<cosh>},
      {"Erf", 9, n, each_in_f32<one_op<Opcode::erf>>},
      {"Exp", 1, n, each<one_op<Opcode::exp>>},
      {"Floor", 1, n, each<one_op<Opcode::floor>>},
      {"HardSwish", 14, n, each_in_f32<hard_swish>},
      {"Identity", 1, n, identity},
      {"IsNaN", 9, n, each<is_nan>},
      {"Log", 1, n, each<one_op<Opcode::log>>},
      {"Mish", 18, n, each_in_f32<mish>},
      {"Neg", 1, n, each<one_op<Opcode::neg>>},
      {"Not", 1, n, each<one_op<Opcode::not_>>},
      {"Reciprocal", 1, n, each<reciprocal>},
      {"Relu", 1, n, each<rectified>},
      {"Round", 11, n, each<one_op<Opcode::round>>},
      {"Sigmoid", 1, n, each_in_f32<sigmoid>},
      {"Sign", 9, n, each<sign>},
      {"Sin", 7, n, each<one_op<Opcode::sin>>},
      {"Sinh", 9, n, each_in_f64<sinh>},
      {"Softplus", 1, n, each_in_f32<softplus>},
      {"Softsign", 1, n, each_in_f32<softsign>},
      {"Sqrt", 1, n, each<one_op<Opcode::sqrt>>},
      {"Tan", 7, n, each_in_f64<tan>},
      {"Tanh", 1, n, each<one_op<Opcode::tanh>>},
  };
}

std::vector<Operator> binary_operators() {
  const int64_t n = kLatestOpset;
  return {
      {"Add", 7, n, pairwise<two_op<Opcode::add>>},
      {"And", 7, n, pairwise<two_op<Opcode::and_>>},
      {"BitShift", 11, n, bit_shift},
      {"BitwiseAnd", 18, n, pairwise<two_op<Opcode::and_>>},
      {"BitwiseOr", 18, n, pairwise<two_op<Opcode::or_>>},
      {"BitwiseXor", 18, n, pairwise<two_op<Opcode::xor_>>},
      {"Div", 7, n, pairwise<two_op<Opcode::div>>},
      {"Equal", 7, n, pairwise<two_op<Opcode::eq>>},
      {"Greater", 7, n, pairwise<greater>},
      {"GreaterOrEqual", 12, n, pairwise<greater_or_equal>},
      {"Less", 7, n, pairwise<two_op<Opcode::lt>>},
      {"LessOrEqual", 12, n, pairwise<two_op<Opcode::le>>},
      {"Max", 8, n, fold_of_inputs<Opcode::max>},
      {"Mean", 8, n, mean_of_inputs},
      {"Min", 8, n, fold_of_inputs<Opcode::min>},
      {"Mod", 10, n, modulo},
      {"Mul", 7, n, pairwise<two_op<Opcode::mul>>},
      {"Or", 7, n, pairwise<two_op<Opcode::or_>>},
      {"Pow", 7, n, pow_of},
      {"Sub", 7, n, pairwise<two_op<Opcode::sub>>},
      {"Sum", 8, n, fold_of_inputs<Opcode::add>},
      {"Where", 9, n, where_of},
      {"Xor", 7, n, pairwise<two_op<Opcode::xor_>>},
  };
}

}  // namespace

std::vector<Operator> pointwise_operators() {
  const int64_t n = kLatestOpset;
  std::vector<Operator> all = {
      {"Cast", 6, n, cast_of},
      {"CastLike", 15, n, cast_like},
      {"Celu", 12, n, celu},
      {"Clip", 6, n, clip},
      {"Elu", 1, n, elu},
      {"Gelu", 20, n, gelu_of},
      {"HardSigmoid", 1, n, hard_sigmoid},
      {"IsInf", 10, n, is_inf},
      {"LeakyRelu", 1, n, leaky_relu},
      {"PRelu", 7, n, prelu},
      {"Selu", 1, n, selu},
      {"Shrink", 9, n, shrink},
      {"Swish", 24, n, swish},
      {"ThresholdedRelu", 10, n, thresholded_relu},
  };
  for (const auto& more :
       {unary_operators(), binary_operators(), dropout_operators(), quantize_operators()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace tw::graph::onnx
