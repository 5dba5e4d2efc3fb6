#include <numeric>
#include <set>

#include "tw/math/impl/analysis.h"
#include "tw/math/impl/arithmetic.h"
#include "tw/math/impl/rewrites.h"

namespace tw {
namespace {

using Kind = Expr::Kind;

// x = multiple * y + exact + rest, where y divides exact by the facts only. The constant of rest is
// in [0, |y|) for a constant y.
struct Split {
  Polynomial multiple, exact, rest;
};

[[nodiscard]] bool split_term(const Monomial& m, int64_t c, const Expr& y, const Facts& facts,
                              Split* s) {
  Polynomial term;
  term.set(m, c);
  if (auto q = exact_quotient(term, y)) {
    auto sum = s->multiple.plus(*q);
    if (sum) s->multiple = *sum;
    return sum.has_value();
  }
  const int64_t k = y.is_constant() ? y.constant() : 0;
  if (m.empty() && k > 0) {
    s->rest.set({}, floor_mod(c, k));
    return s->multiple.add({}, floor_div(c, k));
  } else if (k > 0 && divisor(m, c, facts) % k == 0) {
    s->exact.set(m, c);
  } else {
    s->rest.set(m, c);
  }
  return true;
}

std::optional<Split> split(const Expr& x, const Expr& y, const Facts& facts) {
  auto p = Polynomial::of(x);
  if (!p) return std::nullopt;
  Split s;
  for (const auto& [m, c] : p->terms())
    if (!split_term(m, c, y, facts, &s)) return std::nullopt;
  return s;
}

// 0 <= r < y, so y is positive too.
bool in_range(const Polynomial& r, const Expr& y, const Facts& facts) {
  auto end = Polynomial::of(y - 1);
  auto room = end ? end->plus(r, -1) : std::nullopt;
  return room && prove_nonnegative(r, facts) && prove_nonnegative(*room, facts);
}

// The residues of smallest magnitude mod k.
Polynomial least_residues(const Polynomial& p, int64_t k) {
  Polynomial r;
  for (const auto& [m, c] : p.terms()) {
    const int64_t up = floor_mod(c, k);
    r.set(m, up <= k - up ? up : up - k);
  }
  return r;
}

// x = g * quotient + rest with 0 <= rest < g, for the largest g that divides k and one coefficient.
struct Reduced {
  int64_t g;
  Polynomial quotient, rest;
};

std::optional<Reduced> reduce(const Expr& x, int64_t k, const Facts& facts) {
  auto p = Polynomial::of(x);
  if (!p) return std::nullopt;
  std::set<int64_t, std::greater<>> divisors;
  for (const auto& [m, c] : p->terms())
    if (!m.empty()) divisors.insert(std::gcd(c, k));
  for (int64_t g : divisors) {
    if (g <= 1 || g == k) continue;
    Reduced r{g, {}, {}};
    for (const auto& [m, c] : p->terms()) {
      const bool splits = m.empty() || c % g == 0;
      r.quotient.set(m, splits ? floor_div(c, g) : 0);
      r.rest.set(m, splits ? floor_mod(c, g) : c);
    }
    if (in_range(r.rest, Expr(g), facts)) return r;
  }
  return std::nullopt;
}

bool has_positive_constant(const Expr& e, Kind kind) {
  return e.kind() == kind && e.rhs().is_constant() && e.rhs().constant() > 1;
}

}  // namespace

std::optional<Expr> split_quotient(const Expr& e, const Facts& facts) {
  if (e.kind() != Kind::floordiv) return std::nullopt;
  const Expr& y = e.rhs();
  auto s = split(e.lhs(), y, facts);
  if (!s) return std::nullopt;
  if (in_range(s->rest, y, facts)) return to_expr(s->multiple) + floordiv(to_expr(s->exact), y);
  const Interval sign = bounds(y, facts);
  auto left = s->exact.plus(s->rest);
  if (!left || (sign.lo <= 0 && sign.hi >= 0)) return std::nullopt;
  return to_expr(s->multiple) + floordiv(to_expr(*left), y);
}

std::optional<Expr> split_remainder(const Expr& e, const Facts& facts) {
  if (e.kind() != Kind::mod) return std::nullopt;
  const Expr& y = e.rhs();
  auto s = split(e.lhs(), y, facts);
  if (!s) return std::nullopt;
  if (in_range(s->rest, y, facts)) return to_expr(s->rest);
  if (!y.is_constant() || y.constant() < 1) return mod(to_expr(s->rest), y);
  const Polynomial least = least_residues(s->rest, y.constant());
  return in_range(least, y, facts) ? to_expr(least) : mod(to_expr(least), y);
}

std::optional<Expr> reduce_quotient(const Expr& e, const Facts& facts) {
  if (!has_positive_constant(e, Kind::floordiv)) return std::nullopt;
  auto r = reduce(e.lhs(), e.rhs().constant(), facts);
  if (!r) return std::nullopt;
  return floordiv(to_expr(r->quotient), Expr(e.rhs().constant() / r->g));
}

std::optional<Expr> reduce_remainder(const Expr& e, const Facts& facts) {
  if (!has_positive_constant(e, Kind::mod)) return std::nullopt;
  auto r = reduce(e.lhs(), e.rhs().constant(), facts);
  if (!r) return std::nullopt;
  const Expr remainder = mod(to_expr(r->quotient), Expr(e.rhs().constant() / r->g));
  return remainder * Expr(r->g) + to_expr(r->rest);
}

}  // namespace tw
