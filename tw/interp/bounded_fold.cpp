#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tw/interp/bounded.h"
#include "tw/num/codec.h"

namespace tw {

namespace {

/// The exponent of the last digit of a finite number; 0 has none that matters.
int last_digit(double v) {
  if (v == 0) return std::numeric_limits<int>::max() / 4;
  int e = 0;
  const double m = std::frexp(v, &e);
  const auto digits = static_cast<int64_t>(std::ldexp(m, 53));
  return e - 53 + __builtin_ctzll(static_cast<uint64_t>(digits));
}

struct Term {
  long double value;
  double bound;
  int last;  ///< exponent of its last digit
};

Term term(const Scalar& a) { return {a.f, a.bound, last_digit(a.f)}; }

bool has_11_bits(const Scalar& s) {
  return s.bound == 0 && static_cast<double>(static_cast<float>(s.f)) == s.f &&
         (std::bit_cast<uint32_t>(static_cast<float>(s.f)) & 0x1fff) == 0;
}

constexpr double kLeastOf11Bits = 0x1p-136;
/// Whether rounding to 11 bits may make an infinity of a number.
bool may_overflow(const Scalar& s) {
  return std::isfinite(s.f) && std::fabs(s.f) + s.bound >= 0x1p128 - 0x1p116;
}

/// What a precision leaves of the product beside its factors' own errors.
double left_out(Precision precision, const Scalar& a, const Scalar& b) {
  const ProductError p = product_error(precision);
  const auto is_zero = [](const Scalar& s) { return s.f == 0 && s.bound == 0; };
  if (p.relative == 0 || is_zero(a) || is_zero(b) || (has_11_bits(a) && has_11_bits(b))) return 0;
  const auto most = [&p](const Scalar& s) { return std::max(std::fabs(s.f) + s.bound, p.least); };
  return p.relative * most(a) * most(b);
}

Term term(Precision precision, const Scalar& a, const Scalar& b) {
  const double e = std::fabs(a.f) * b.bound + std::fabs(b.f) * a.bound + a.bound * b.bound +
                   left_out(precision, a, b);
  return {static_cast<long double>(a.f) * b.f, e, last_digit(a.f) + last_digit(b.f)};
}

/// Terms of any order and grouping, summed in compute_type(t). NaN beats all, infinities of both
/// signs make NaN, and a sum that may overflow on some way is not known.
Scalar sum_of(DType t, const std::vector<Term>& terms, bool rounds_result) {
  const DType c = compute_type(t);
  const double u = unit_roundoff(c);
  long double v = 0, magnitude = 0;
  double e = 0, special = 0;
  int last = std::numeric_limits<int>::max();
  bool all_negative_zero = true;
  for (const Term& x : terms) {
    if (!std::isfinite(x.value)) special += static_cast<double>(x.value);
    if (!std::isfinite(x.value)) continue;
    v += x.value;
    magnitude += std::fabs(x.value) + x.bound;
    e += x.bound;
    last = std::min(last, x.last);
    all_negative_zero = all_negative_zero && x.value == 0 && std::signbit(x.value);
  }
  if (std::isnan(special)) return Scalar::of_float(special);
  if (magnitude > largest(c)) return Scalar::unknown();
  if (special != 0) return Scalar::of_float(special);
  const double n = static_cast<double>(terms.size());
  const bool digits_fit =
      last >= std::ilogb(decode(c, 1)) && static_cast<double>(magnitude) <= std::ldexp(1 / u, last);
  const double value = static_cast<double>(v);
  if (e == 0 && digits_fit) {
    if (all_negative_zero && n > 1) return Scalar::of_float(0, settle(t, 0, 0, 0, 1).bound);
    const CastAttr nearest;
    return exact_cast(c, t, nearest, 0, Scalar::of_float(value == 0 && n > 1 ? 0.0 : value));
  }
  e += 8 * std::sqrt(n) * u * static_cast<double>(magnitude);
  return settle(t, value, e, rounds_result ? unit_roundoff(t) + 0x1p-53 : 0x1p-53, n);
}

bool any_undecided(std::span<const Scalar> terms) {
  return std::any_of(terms.begin(), terms.end(), [](const Scalar& s) { return s.undecided; });
}

}  // namespace

Scalar bounded_sum(DType t, std::span<const Scalar> terms) {
  if (any_undecided(terms)) return Scalar::unknown();
  if (terms.size() == 1) return terms[0];
  std::vector<Term> list;
  for (const Scalar& s : terms) list.push_back(term(s));
  return sum_of(t, list, t != compute_type(t));
}

Scalar bounded_dot(DType t, Precision precision, std::span<const Scalar> a,
                   std::span<const Scalar> b, const Scalar& acc) {
  if (any_undecided(a) || any_undecided(b) || acc.undecided) return Scalar::unknown();
  std::vector<Term> list{term(acc)};
  for (size_t k = 0; k < a.size(); ++k) {
    const bool infinite = std::isinf(a[k].f) || std::isinf(b[k].f);
    const bool rounded = precision != Precision::ieee;
    const auto may_vanish = [rounded](const Scalar& s) {
      return (s.bound > 0 && std::fabs(s.f) <= s.bound) ||
             (rounded && s.f != 0 && std::fabs(s.f) - s.bound < kLeastOf11Bits);
    };
    if (infinite && (may_vanish(a[k]) || may_vanish(b[k]))) return Scalar::unknown();
    if (precision == Precision::tf32 && (may_overflow(a[k]) || may_overflow(b[k])))
      return Scalar::unknown();
    list.push_back(term(precision, a[k], b[k]));
  }
  return sum_of(t, list, false);
}

Scalar bounded_product(DType t, std::span<const Scalar> terms) {
  if (any_undecided(terms)) return Scalar::unknown();
  if (terms.size() == 1) return terms[0];
  const DType c = compute_type(t);
  const double n = static_cast<double>(terms.size());
  long double v = 1, large = 1, reach = 1;
  bool special = false, zero = false, integers = true;
  for (const Scalar& s : terms) {
    const long double top = std::fabs(s.f) + s.bound;
    special = special || !std::isfinite(s.f);
    zero = zero || (s.bound > 0 ? std::fabs(s.f) <= s.bound : s.f == 0);
    integers = integers && s.bound == 0 && s.f != 0 && s.f == std::nearbyint(s.f);
    v *= s.f;
    reach *= top;
    if (std::isfinite(s.f)) large *= std::max<long double>(top, 1);
  }
  const double value = static_cast<double>(v);
  // Some order may overflow, or lose to 0, before the factor that brings it back.
  if (special && std::isnan(value)) return Scalar::of_float(value);
  if (large > largest(c)) return Scalar::unknown();
  if (special) return zero ? Scalar::unknown() : Scalar::of_float(value);
  if (integers && large <= 1 / unit_roundoff(c)) return Scalar::of_float(round_to(t, value));
  const double magnitude = static_cast<double>(reach);
  const double e = magnitude - std::fabs(value) + n * unit_roundoff(c) * magnitude;
  const double lost = n * static_cast<double>(large);
  return settle(t, value, std::max(e, 0.0) * (1 + 0x1p-50), unit_roundoff(t) + n * 0x1p-53, lost);
}

}  // namespace tw
