#include "tw/check/bound.h"

#include <algorithm>
#include <cmath>

namespace tw::check {

namespace {

double family_ulps(Family f, DType accumulate) {
  switch (f) {
    case Family::exact:
    case Family::elementwise:
    case Family::reduction:
    case Family::gemm:
      return 0;
    case Family::norm:
      return stated_ulps(Opcode::rsqrt, accumulate);
    case Family::softmax:
      return stated_ulps(Opcode::exp, accumulate);
  }
  return 0;
}

bool adds_products(Family f) { return f == Family::gemm || f == Family::norm; }

/// Where rounding to nearest leaves the finite values of t.
double overflow_threshold(DType t) { return largest(t) + ulp(t, largest(t)) / 2; }

bool may_overflow(DType out, double reference, double bound) {
  return std::fabs(reference) + bound >= overflow_threshold(out);
}

}  // namespace

DType accumulator_of(DType t) { return is_float(t) && t != f64 ? f32 : t; }

double ulp(DType t, double x) {
  if (!is_float(t)) return 0;
  const DTypeInfo& i = info(t);
  const int smallest = 2 - (1 << (i.exponent_bits - 1));
  const int exponent = x == 0 || !std::isfinite(x) ? smallest : std::max(std::ilogb(x), smallest);
  return std::ldexp(1.0, exponent - i.mantissa_bits);
}

double bound(const Accuracy& a, double reference, double sum_abs) {
  if (a.family == Family::exact || !is_float(a.out)) return 0;
  const double u = unit_roundoff(a.accumulate);
  const double k = static_cast<double>(std::max<int64_t>(a.terms, 1));
  const double functions = family_ulps(a.family, a.accumulate) + a.function_ulps;
  const double eta = adds_products(a.family) ? ulp(a.accumulate, 0) / 2 : 0;
  return ulp(a.out, reference) +
         ((8 * std::sqrt(k) + 2 * functions) * u + product_error(a.precision).relative) * sum_abs +
         8 * std::sqrt(k) * eta;
}

double error_ratio(DType out, double got, double reference, double bound) {
  if (std::isnan(got) || std::isnan(reference)) {
    // Without an infinity what overflows becomes NaN.
    const bool none = has_nan(out) && !has_infinity(out);
    if (none && std::isnan(got) && may_overflow(out, reference, bound)) return 0;
    return std::isnan(got) && std::isnan(reference) ? 0 : INFINITY;
  }
  if (std::isinf(reference)) return got == reference ? 0 : INFINITY;
  if (std::isinf(got)) {
    const bool same_sign = std::signbit(got) == std::signbit(reference);
    return same_sign && is_float(out) && may_overflow(out, reference, bound) ? 0 : INFINITY;
  }
  if (bound == 0)
    return got == reference && std::signbit(got) == std::signbit(reference) ? 0 : INFINITY;
  return std::fabs(got - reference) / bound;
}

}  // namespace tw::check
