#include <algorithm>
#include <numeric>

#include "tw/math/impl/analysis.h"
#include "tw/math/impl/arithmetic.h"
#include "tw/math/impl/polynomial.h"

namespace tw {
namespace {

using Kind = Expr::Kind;

// The members of r that are c mod m.
Interval tightened(Interval r, int64_t m, int64_t c = 0) {
  if (m <= 1) return r;
  // Differences of int64s need one bit more.
  const int128 up = static_cast<int128>(c) - r.lo, down = static_cast<int128>(r.hi) - c;
  if (r.lo != Interval::kMin) r.lo = clamp_to_int64(r.lo + (up % m + m) % m);
  if (r.hi != Interval::kMax) r.hi = clamp_to_int64(r.hi - (down % m + m) % m);
  return r;
}

Interval symbol_bounds(Symbol s, const Facts& facts) {
  const SymbolFact fact = fact_of(s, facts);
  Interval r = fact.range;
  if (fact.from) r.lo = std::max(r.lo, bounds(*fact.from, facts).lo);
  if (fact.below) {
    const int64_t end = bounds(*fact.below, facts).hi;
    if (end != Interval::kMax) r.hi = std::min(r.hi, end - (end != Interval::kMin ? 1 : 0));
  }
  return tightened(r, fact.multiple_of);
}

// mod(M*32 + 5, 64) is 5 or 37: the remainder keeps what the constant is mod the gcd of the rest.
// Not so where the divisor may be 0.
Interval mod_bounds(const Expr& e, const Facts& facts) {
  const Interval y = bounds(e.rhs(), facts);
  const Interval r = mod(bounds(e.lhs(), facts), y);
  auto p = y.lo > 0 || y.hi < 0 ? Polynomial::of(e.lhs()) : std::nullopt;
  if (!p) return r;
  const int64_t c = p->constant();
  p->set({}, 0);
  return tightened(r, std::gcd(divisor(*p, facts), divisor(e.rhs(), facts)), c);
}

Interval node_bounds(const Expr& e, const Facts& facts) {
  if (e.is_constant()) return {e.constant(), e.constant()};
  if (e.kind() == Kind::symbol) return symbol_bounds(e.symbol(), facts);
  if (e.kind() == Kind::mod) return mod_bounds(e, facts);
  const Interval a = bounds(e.lhs(), facts), b = bounds(e.rhs(), facts);
  switch (e.kind()) {
    case Kind::add:
      return add(a, b);
    case Kind::sub:
      return add(a, negate(b));
    case Kind::mul:
      return mul(a, b);
    case Kind::floordiv:
      return floordiv(a, b);
    case Kind::min:
      return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case Kind::max:
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    case Kind::mod:
    case Kind::constant:
    case Kind::symbol:
      break;
  }
  return {};
}

}  // namespace

SymbolFact fact_of(Symbol s, const Facts& facts) {
  auto it = facts.find(s);
  SymbolFact fact = it == facts.end() ? SymbolFact{} : it->second;
  if (s.kind != SymbolKind::loop) fact.range.lo = std::max<int64_t>(fact.range.lo, 0);
  return fact;
}

Interval bounds(const Polynomial& p, const Facts& facts) {
  Interval sum{0, 0};
  for (const auto& [m, c] : p.terms()) {
    Interval term{c, c};
    for (const Expr& atom : m) term = mul(term, node_bounds(atom, facts));
    sum = add(sum, term);
  }
  return sum;
}

Interval bounds(const Expr& e, const Facts& facts) {
  const Interval r = node_bounds(e, facts);
  const bool sum = e.kind() == Kind::add || e.kind() == Kind::sub || e.kind() == Kind::mul;
  if (!sum) return r;
  auto p = Polynomial::of(e);
  return p ? intersect(r, bounds(*p, facts)) : r;
}

}  // namespace tw
