#include "tw/interp/bounded.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tw/num/codec.h"

namespace tw {

namespace {

constexpr double kU64 = 0x1p-53;

double smallest_subnormal(DType t) { return decode(t, 1); }

bool same(double a, double b) {
  return (a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b));
}

bool exact(const Scalar& a) { return a.bound == 0; }

bool exact_zero(const Scalar& a) { return a.bound == 0 && a.f == 0; }

/// Whether the value may be 0 without being an exact 0 of known sign.
bool may_vanish(const Scalar& a) { return a.bound > 0 && std::fabs(a.f) <= a.bound; }

double in_double(Opcode code, double a) { return exact_unary(code, f64, Scalar::of_float(a)).f; }

bool is_compare(Opcode code) {
  return code == Opcode::eq || code == Opcode::ne || code == Opcode::lt || code == Opcode::le;
}

/// For narrow floats rounding usually swallows the bound: when both ends round to the same number,
/// so does everything between.
Scalar round_interval(DType t, double v, double lo, double hi) {
  const DType c = compute_type(t);
  const double a = round_to(t, round_to(c, lo)), b = round_to(t, round_to(c, hi));
  if (bytes(t) <= 2 && same(a, b)) return Scalar::of_float(a);
  const double e = std::max(hi - v, v - lo);
  return settle(t, v, e, unit_roundoff(t) + kU64, 1);
}

/// A function's value v, off by e for its operand's bound and by what the function states.
Scalar evaluated(Opcode code, DType t, double v, double e) {
  const double ulps = stated_ulps(code, t);
  // The host's own error in v, of a backend of another host too, is within the ulps of f64.
  const double own = 2 * stated_ulps(code, f64) * kU64;
  return settle(t, v, e, 2 * ulps * unit_roundoff(t) + unit_roundoff(t) + own, ulps + 1);
}

Scalar monotone(Opcode code, DType t, const Scalar& a) {
  const double lo = a.f - a.bound, hi = a.f + a.bound;
  const bool has_edge = code == Opcode::sqrt || code == Opcode::rsqrt || code == Opcode::log;
  const bool edge_is_pole = code != Opcode::sqrt;
  if (has_edge && a.bound > 0 && hi >= 0 && (edge_is_pole ? lo <= 0 : lo < 0))
    return Scalar::unknown();
  const double v = in_double(code, a.f), x = in_double(code, lo), y = in_double(code, hi);
  const bool limit = std::isinf(a.f) || (exact_zero(a) && in_double(code, 0) == 0);
  if (std::isnan(v) || limit || (exact(a) && std::isinf(v))) return Scalar::of_float(v);
  return evaluated(code, t, v, a.bound == 0 ? 0 : std::max(std::fabs(x - v), std::fabs(y - v)));
}

/// sin, cos: no steeper than the identity, and never further apart than 2.
Scalar wave(Opcode code, DType t, const Scalar& a) {
  const double v = in_double(code, a.f);
  if (std::isnan(v) || (exact_zero(a) && v == 0)) return Scalar::of_float(v);
  return evaluated(code, t, v, std::min(a.bound, 2.0));
}

/// floor, ceil, round: steps; decided when both ends land on the same one.
Scalar step(Opcode code, DType t, const Scalar& a) {
  const double lo = in_double(code, a.f - a.bound), hi = in_double(code, a.f + a.bound);
  if (lo != hi) return Scalar::unknown();
  const bool sign_unclear = lo == 0 && std::signbit(lo) != std::signbit(hi);
  return Scalar::of_float(hi, sign_unclear ? smallest_subnormal(t) : 0);
}

Scalar compare(Opcode code, const Scalar& a, const Scalar& b) {
  const double alo = a.f - a.bound, ahi = a.f + a.bound;
  const double blo = b.f - b.bound, bhi = b.f + b.bound;
  const bool ordered = !std::isnan(a.f) && !std::isnan(b.f);
  const bool below = ahi<blo, above = alo> bhi;
  if (!ordered || (exact(a) && exact(b))) return exact_binary(code, f64, a, b);
  if (code == Opcode::eq || code == Opcode::ne) {
    if (!below && !above) return Scalar::unknown();
    return Scalar::of_int(code == Opcode::ne);
  }
  if (below) return Scalar::of_int(1);
  if (above) return Scalar::of_int(0);
  if (code == Opcode::lt && alo >= bhi) return Scalar::of_int(0);
  if (code == Opcode::le && ahi <= blo) return Scalar::of_int(1);
  return Scalar::unknown();
}

Scalar extremum(Opcode code, DType t, const Scalar& a, const Scalar& b) {
  const auto at = [&](double x, double y) {
    return exact_binary(code, f64, Scalar::of_float(x), Scalar::of_float(y)).f;
  };
  const double v = at(a.f, b.f);
  if (std::isnan(v) || std::isinf(v)) return Scalar::of_float(v);
  double lo = at(a.f - a.bound, b.f - b.bound), hi = at(a.f + a.bound, b.f + b.bound);
  double e = std::max(hi - v, v - lo);
  // Which of two zeros it was may be unclear, and with it the sign.
  if (v == 0 && e == 0 && (may_vanish(a) || may_vanish(b))) e = smallest_subnormal(t);
  return Scalar::of_float(v, e == 0 ? 0 : e * (1 + 4 * kU64));
}

Scalar product(DType t, const Scalar& a, const Scalar& b) {
  const double v = a.f * b.f;
  if (std::isinf(a.f) || std::isinf(b.f)) {
    if (may_vanish(a) || may_vanish(b)) return Scalar::unknown();
    return Scalar::of_float(v);
  }
  if (exact_zero(a) || exact_zero(b))
    return Scalar::of_float(v, may_vanish(a) || may_vanish(b) ? smallest_subnormal(t) : 0);
  const double e = std::fabs(a.f) * b.bound + std::fabs(b.f) * a.bound + a.bound * b.bound;
  return round_interval(t, v, v - e, v + e);
}

Scalar quotient(DType t, const Scalar& a, const Scalar& b) {
  if (may_vanish(b)) return Scalar::unknown();
  const double v = a.f / b.f;
  if (std::isinf(a.f) || exact_zero(a)) return Scalar::of_float(v);
  if (std::isinf(b.f)) return Scalar::of_float(v, may_vanish(a) ? smallest_subnormal(t) : 0);
  if (b.f == 0) return may_vanish(a) ? Scalar::unknown() : Scalar::of_float(v);
  const double e = (a.bound + std::fabs(v) * b.bound) / (std::fabs(b.f) - b.bound);
  return round_interval(t, v, v - e, v + e);
}

Scalar sum_or_difference(Opcode code, DType t, const Scalar& a, const Scalar& b) {
  const double v = code == Opcode::add ? a.f + b.f : a.f - b.f;
  if (std::isinf(a.f) || std::isinf(b.f)) return Scalar::of_float(v);
  const double e = a.bound + b.bound;
  return round_interval(t, v, v - e, v + e);
}

/// Whether op(a, b) = r in exact arithmetic, for finite a, b, r of dtype t.
bool is_exact_result(Opcode code, double a, double b, double r) {
  if (code == Opcode::mul) return std::fma(a, b, -r) == 0;
  if (code == Opcode::div) return std::fma(r, b, -a) == 0;
  if (code == Opcode::sub) b = -b;
  // Two-sum (Knuth): the rounding error of a + b in double, itself exact.
  const double s = a + b, bb = s - a;
  return s == r && (a - (s - bb)) + (b - bb) == 0;
}

bool rounds(Opcode code) {
  return code == Opcode::add || code == Opcode::sub || code == Opcode::mul || code == Opcode::div;
}

/// Exact operands, but a rounding that a backend may skip or do elsewhere.
Scalar loose_result(Opcode code, DType t, const Scalar& a, const Scalar& b) {
  const Scalar r = exact_binary(code, t, a, b);
  if (!is_float(t) || !rounds(code) || !std::isfinite(a.f) || !std::isfinite(b.f)) return r;
  if (!std::isfinite(r.f)) return b.f == 0 && code == Opcode::div ? r : Scalar::unknown();
  if (is_exact_result(code, a.f, b.f, r.f)) return r;
  return settle(t, exact_binary(code, f64, a, b).f, 0, unit_roundoff(t) + kU64, 1);
}

}  // namespace

Scalar settle(DType t, double v, double e, double relative, double absolute) {
  if (std::isnan(v)) return std::isnan(e) ? Scalar::unknown() : Scalar::of_float(v);
  const double top = largest(t);
  const double magnitude = std::fabs(v);
  if (!(e < std::numeric_limits<double>::infinity()) || (std::isinf(v) && e > 0))
    return Scalar::unknown();
  if (magnitude - e > top * (1 + 2 * unit_roundoff(t)))
    return Scalar::of_float(round_to(t, std::copysign(std::numeric_limits<double>::infinity(), v)));
  const double bound =
      (e + relative * (magnitude + e) + absolute * smallest_subnormal(t)) * (1 + 8 * kU64);
  if (magnitude + bound > top) return Scalar::unknown();
  return Scalar::of_float(v, bound);
}

Scalar bounded_unary(Opcode code, DType t, const Scalar& a) {
  if (a.undecided) return Scalar::unknown();
  if (exact(a) && stated_ulps(code, t) == 0) return exact_unary(code, t, a);
  if (code == Opcode::neg) return Scalar::of_float(-a.f, a.bound);
  if (code == Opcode::abs) return Scalar::of_float(std::fabs(a.f), a.bound);
  if (code == Opcode::floor || code == Opcode::ceil || code == Opcode::round)
    return step(code, t, a);
  if (code == Opcode::sin || code == Opcode::cos) return wave(code, t, a);
  return monotone(code, t, a);
}

Scalar bounded_binary(Opcode code, DType t, const Scalar& a, const Scalar& b, bool loose) {
  if (a.undecided || b.undecided) return Scalar::unknown();
  if (exact(a) && exact(b))
    return loose ? loose_result(code, t, a, b) : exact_binary(code, t, a, b);
  if (is_compare(code)) return compare(code, a, b);
  if (std::isnan(a.f) || std::isnan(b.f)) {
    const Scalar v = exact_binary(code, f64, a, b);
    return Scalar::of_float(v.f, std::isnan(v.f) ? 0 : std::max(a.bound, b.bound));
  }
  if (!rounds(code)) return extremum(code, t, a, b);
  const Scalar r = code == Opcode::mul   ? product(t, a, b)
                   : code == Opcode::div ? quotient(t, a, b)
                                         : sum_or_difference(code, t, a, b);
  const bool overflows = std::isinf(r.f) && std::isfinite(a.f) && std::isfinite(b.f);
  return loose && overflows ? Scalar::unknown() : r;
}

Scalar either_order(DType t, const Scalar& forward, const Scalar& backward) {
  if (forward.undecided || backward.undecided) return Scalar::unknown();
  if (!is_float(t)) return forward.i == backward.i ? forward : Scalar::unknown();
  if (exact(forward) && exact(backward) && same(forward.f, backward.f)) return forward;
  if (!std::isfinite(forward.f) || !std::isfinite(backward.f))
    return same(forward.f, backward.f) ? forward : Scalar::unknown();
  // Other orders round other partial results; they are taken to be at most twice as far off.
  const double e = std::max(forward.bound, backward.bound);
  return settle(t, forward.f, 2 * e + std::fabs(forward.f - backward.f), 0, 1);
}

Scalar bounded_where(const Scalar& mask, const Scalar& a, const Scalar& b) {
  return mask.undecided ? Scalar::unknown() : mask.i != 0 ? a : b;
}

Scalar bounded_cast(DType from, DType to, const CastAttr& how, uint32_t random, const Scalar& a) {
  if (a.undecided) return Scalar::unknown();
  const auto at = [&](double v) { return exact_cast(from, to, how, random, Scalar::of_float(v)); };
  if (exact(a)) return exact_cast(from, to, how, random, a);
  const Scalar lo = at(a.f - a.bound), hi = at(a.f + a.bound);
  if (!is_float(to))
    return to == b1 && may_vanish(a) ? Scalar::unknown() : lo.i == hi.i ? lo : Scalar::unknown();
  if (same(lo.f, hi.f)) return lo;
  if (!std::isfinite(lo.f) || !std::isfinite(hi.f)) return Scalar::unknown();
  const double e = std::max(hi.f - a.f, a.f - lo.f);
  return Scalar::of_float(a.f, std::max(e * (1 + 4 * kU64), smallest_subnormal(to)));
}

Scalar bounded_bitcast(DType from, DType to, const Scalar& a) {
  if (a.undecided || !exact(a)) return Scalar::unknown();
  return exact_bitcast(from, to, a);
}

}  // namespace tw
