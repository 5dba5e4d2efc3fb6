#include "tw/graph/onnx/functions.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

namespace tw::graph::onnx {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Term plus(const Term& a, const Term& b) { return op(Opcode::add, a, b); }
Term minus(const Term& a, const Term& b) { return op(Opcode::sub, a, b); }
Term times(const Term& a, const Term& b) { return op(Opcode::mul, a, b); }
Term over(const Term& a, const Term& b) { return op(Opcode::div, a, b); }
Term scaled(const Term& a, double by) { return times(a, real(a, by)); }
Term shifted_by(const Term& a, double by) { return plus(a, real(a, by)); }
Term both(const Term& a, const Term& b) { return op(Opcode::and_, a, b); }
Term magnitude(const Term& x) { return op(Opcode::abs, x); }
Term less(const Term& a, double b) { return op(Opcode::lt, a, real(a, b)); }
Term equals(const Term& a, double b) { return op(Opcode::eq, a, real(a, b)); }

/// Coefficients, those of the highest power first.
Term polynomial(const Term& x, std::span<const double> coefficients) {
  Term sum = real(x, coefficients[0]);
  for (double c : coefficients.subspan(1)) sum = shifted_by(times(sum, x), c);
  return sum;
}

/// f of |x| with the sign of x.
Term odd(const Term& x, const Term& of_magnitude) {
  return where(less(x, 0), op(Opcode::neg, of_magnitude), where(equals(x, 0), x, of_magnitude));
}

/// e^(|x|/2): its square overflows only where cosh does.
Term half_exponential(const Term& x) { return op(Opcode::exp, scaled(magnitude(x), 0.5)); }

}  // namespace

Term in_f32(const Term& x, Term (*f)(const Term&)) {
  const DType t = x->dtype;
  return t == f16 || t == bf16 ? cast(f(cast(x, f32)), t) : f(x);
}

Term in_f64(const Term& x, Term (*f)(const Term&)) { return cast(f(cast(x, f64)), x->dtype); }

Term real(const Term& like, double v) { return constant(like->dtype, v); }
Term is_nan(const Term& x) { return op(Opcode::ne, x, x); }
Term greater(const Term& a, const Term& b) { return op(Opcode::lt, b, a); }

Term truncated(const Term& x) {
  return where(less(x, 0), op(Opcode::ceil, x), op(Opcode::floor, x));
}

Term log1p(const Term& x) {
  // What 1 + x loses of x is made good by the quotient (Kahan).
  const Term w = shifted_by(x, 1);
  const Term mended = times(op(Opcode::log, w), over(x, shifted_by(w, -1)));
  return where(equals(w, 1), x, where(equals(x, kInfinity), x, mended));
}

Term expm1_below(const Term& x) {
  const Term t = op(Opcode::tanh, scaled(x, 0.5));
  return over(scaled(t, 2), minus(real(t, 1), t));
}

Term sigmoid(const Term& x) {
  return over(real(x, 1), shifted_by(op(Opcode::exp, op(Opcode::neg, x)), 1));
}

Term softplus(const Term& x) {
  const Term tail = log1p(op(Opcode::exp, op(Opcode::neg, magnitude(x))));
  return plus(op(Opcode::max, x, real(x, 0)), tail);
}

Term gelu(const Term& x) {
  const Term e = op(Opcode::erf, scaled(x, std::numbers::sqrt2 / 2));
  return times(scaled(x, 0.5), shifted_by(e, 1));
}

Term gelu_tanh(const Term& x) {
  const double root = std::sqrt(2 / std::numbers::pi);
  const Term inner = scaled(plus(x, scaled(times(times(x, x), x), 0.044715)), root);
  return times(scaled(x, 0.5), shifted_by(op(Opcode::tanh, inner), 1));
}

Term sign(const Term& x) {
  const Term zero = real(x, 0), one = real(x, 1);
  const Term below = is_unsigned_int(x->dtype) ? x : where(less(x, 0), real(x, -1), x);
  return where(greater(x, zero), one, below);
}

Term tan(const Term& x) { return over(op(Opcode::sin, x), op(Opcode::cos, x)); }

Term atan(const Term& x) {
  // Three ranges and a rational function, as in Moshier's Cephes (1984).
  constexpr double kHalfPi = std::numbers::pi / 2, kRest = 6.123233995736765886130e-17;
  constexpr std::array p = {-8.750608600031904122785e-1, -1.615753718733365076637e1,
                            -7.500855792314704667340e1, -1.228866684490136173410e2,
                            -6.485021904942025371773e1};
  constexpr std::array q = {1.0,
                            2.485846490142306297962e1,
                            1.650270098316988542046e2,
                            4.328810604912902668951e2,
                            4.853903996359136964868e2,
                            1.945506571482613964425e2};
  const Term a = magnitude(x);
  const Term high = greater(a, real(a, 2.41421356237309504880)), low = less(a, 0.66);
  const Term folded = over(shifted_by(a, -1), shifted_by(a, 1));
  const Term r = where(high, over(real(a, -1), a), where(low, a, folded));
  const Term z = times(r, r);
  const Term series = over(times(z, polynomial(z, p)), polynomial(z, q));
  const Term near = plus(times(r, series), r);
  const Term base = where(high, real(a, kHalfPi), where(low, real(a, 0), real(a, kHalfPi / 2)));
  const Term rest = where(high, real(a, kRest), where(low, real(a, 0), real(a, kRest / 2)));
  return odd(x, plus(base, plus(near, rest)));
}

Term asin(const Term& x) {
  const Term one = real(x, 1);
  return atan(over(x, op(Opcode::sqrt, times(minus(one, x), plus(one, x)))));
}

Term acos(const Term& x) {
  const Term one = real(x, 1);
  return scaled(atan(op(Opcode::sqrt, over(minus(one, x), plus(one, x)))), 2);
}

Term sinh(const Term& x) {
  constexpr std::array series = {1.0 / 39916800, 1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6, 1.0};
  const Term e = half_exponential(x);
  const Term far = minus(times(scaled(e, 0.5), e), over(over(real(x, 0.5), e), e));
  const Term near = times(x, polynomial(times(x, x), series));
  return where(less(magnitude(x), 0.3), near, odd(x, far));
}

Term cosh(const Term& x) {
  const Term e = half_exponential(x);
  return plus(times(scaled(e, 0.5), e), over(over(real(x, 0.5), e), e));
}

Term asinh(const Term& x) {
  const Term a = magnitude(x), square = times(a, a);
  const Term root = op(Opcode::sqrt, shifted_by(square, 1));
  const Term near = log1p(plus(a, over(square, shifted_by(root, 1))));
  const Term far = shifted_by(op(Opcode::log, a), std::numbers::ln2);
  return odd(x, where(less(a, 1e8), near, far));
}

Term acosh(const Term& x) {
  const Term t = shifted_by(x, -1);
  const Term near = log1p(plus(t, op(Opcode::sqrt, plus(scaled(t, 2), times(t, t)))));
  const Term far = shifted_by(op(Opcode::log, x), std::numbers::ln2);
  return where(less(x, 1), real(x, std::nan("")), where(less(x, 1e8), near, far));
}

Term atanh(const Term& x) {
  const Term a = magnitude(x);
  return odd(x, scaled(log1p(over(scaled(a, 2), minus(real(a, 1), a))), 0.5));
}

Term power(const Term& x, const Term& y) {
  const Term a = magnitude(x), one = real(x, 1);
  const Term whole = op(Opcode::eq, op(Opcode::floor, y), y);
  const Term half = scaled(y, 0.5);
  const Term is_odd = both(whole, op(Opcode::ne, op(Opcode::floor, half), half));
  const Term size = where(equals(a, 1), one, op(Opcode::exp, times(y, op(Opcode::log, a))));
  const Term signs = less(where(equals(x, 0), over(one, x), x), 0);
  const Term signed_size = where(both(signs, is_odd), op(Opcode::neg, size), size);
  const Term real_root =
      op(Opcode::or_, op(Opcode::or_, whole, equals(a, kInfinity)), op(Opcode::not_, less(x, 0)));
  const Term general = where(real_root, signed_size, real(x, std::nan("")));
  return where(op(Opcode::or_, equals(x, 1), equals(y, 0)), one, general);
}

Term integer_power(const Term& x, const Term& y) {
  constexpr int kBits = 6;  // larger powers overflow, but for those of -1, 0 and 1
  const Term zero = real(x, 0), one = real(x, 1);
  Term p = one, square = x;
  for (int k = 0; k < kBits; ++k) {
    const Term bit = op(Opcode::and_, y, constant_int(y->dtype, int64_t{1} << k));
    p = where(op(Opcode::ne, bit, zero), times(p, square), p);
    square = times(square, square);
  }
  if (is_unsigned_int(y->dtype)) return p;
  const Term unit = equals(times(x, x), 1);
  return where(both(less(y, 0), op(Opcode::not_, unit)), zero, p);
}

Term float_remainder(const Term& a, const Term& b) {
  const Term m = magnitude(b);
  Term r = minus(a, times(truncated(over(a, m)), m));
  // The quotient may have been rounded to the next whole number.
  const Term past = less(times(r, sign(a)), 0);
  r = where(past, plus(r, times(sign(a), m)), r);
  const Term signed_r = where(equals(r, 0), scaled(a, 0), r);
  const Term finite = less(magnitude(a), kInfinity);
  return where(both(equals(m, kInfinity), finite), a, signed_r);
}

}  // namespace tw::graph::onnx
