#include <algorithm>

#include "tw/math/impl/analysis.h"
#include "tw/math/impl/arithmetic.h"

namespace tw {
namespace {

constexpr int64_t kMin = Interval::kMin, kMax = Interval::kMax;

int64_t add_low(int64_t a, int64_t b) {
  return a == kMin || b == kMin ? kMin : clamp_to_int64(static_cast<int128>(a) + b);
}
int64_t add_high(int64_t a, int64_t b) {
  return a == kMax || b == kMax ? kMax : clamp_to_int64(static_cast<int128>(a) + b);
}
int64_t negated(int64_t a) { return a == kMin ? kMax : a == kMax ? kMin : -a; }

bool is_infinite(int64_t a) { return a == kMin || a == kMax; }

int64_t product(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (is_infinite(a) || is_infinite(b)) return (a < 0) != (b < 0) ? kMin : kMax;
  return clamp_to_int64(static_cast<int128>(a) * b);
}

// Floor of a / b for b >= 1, infinities taken as limits.
int64_t quotient(int64_t a, int64_t b) {
  if (is_infinite(a)) return a;
  if (b == kMax) return a < 0 ? -1 : 0;
  return floor_div(a, b);
}

Interval hull(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Interval floordiv_by_positive(Interval a, Interval b) {
  return {std::min(quotient(a.lo, b.lo), quotient(a.lo, b.hi)),
          std::max(quotient(a.hi, b.lo), quotient(a.hi, b.hi))};
}

Interval mod_by_positive(Interval a, Interval b) {
  if (a.lo >= 0 && a.hi < b.lo) return a;
  const bool one_period = b.lo == b.hi && !is_infinite(a.lo) && !is_infinite(a.hi) &&
                          floor_div(a.lo, b.lo) == floor_div(a.hi, b.lo);
  if (one_period) return {floor_mod(a.lo, b.lo), floor_mod(a.hi, b.lo)};
  const int64_t below_b = b.hi == kMax ? kMax : b.hi - 1;
  return {0, a.lo >= 0 ? std::min(a.hi, below_b) : below_b};
}

// f on the parts of b below, at and above zero, drawn together; f takes a positive b.
template <class F>
Interval by_sign_of_divisor(Interval a, Interval b, F positive, F negative) {
  std::optional<Interval> all;
  auto include = [&](Interval part) { all = all ? hull(*all, part) : part; };
  if (b.lo <= 0 && b.hi >= 0) include({0, 0});
  if (b.hi >= 1) include(positive(a, {std::max<int64_t>(b.lo, 1), b.hi}));
  if (b.lo <= -1) include(negative(negate(a), negate({b.lo, std::min<int64_t>(b.hi, -1)})));
  return *all;
}

}  // namespace

Interval add(Interval a, Interval b) { return {add_low(a.lo, b.lo), add_high(a.hi, b.hi)}; }

Interval negate(Interval a) { return {negated(a.hi), negated(a.lo)}; }

Interval mul(Interval a, Interval b) {
  const int64_t corners[] = {product(a.lo, b.lo), product(a.lo, b.hi), product(a.hi, b.lo),
                             product(a.hi, b.hi)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

Interval floordiv(Interval a, Interval b) {
  using Part = Interval (*)(Interval, Interval);
  return by_sign_of_divisor<Part>(a, b, floordiv_by_positive, floordiv_by_positive);
}

Interval mod(Interval a, Interval b) {
  using Part = Interval (*)(Interval, Interval);
  return by_sign_of_divisor<Part>(a, b, mod_by_positive, [](Interval na, Interval nb) {
    return negate(mod_by_positive(na, nb));
  });
}

Interval intersect(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

}  // namespace tw
