#include <algorithm>
#include <numeric>
#include <set>

#include "tw/math/impl/analysis.h"
#include "tw/math/impl/arithmetic.h"

namespace tw {
namespace {

using Kind = Expr::Kind;

// Shows p >= 0 by intervals, else by replacing one atom after the other by what bounds it and
// trying again. Every step is sound alone, so the order and the budget decide only what is found.
class Prover {
 public:
  explicit Prover(const Facts& facts) : facts_(facts) {}
  bool run(const Polynomial& p) { return nonnegative(p, kMaxDepth); }

 private:
  static constexpr int kMaxDepth = 8;
  static constexpr int kBudget = 60;

  bool nonnegative(const Polynomial& exact, int depth) {
    const Polynomial p = with_slack(exact);
    if (bounds(p, facts_).lo >= 0) return true;
    if (depth == 0 || budget_-- <= 0) return false;
    if (!seen_.insert(to_expr(p)).second) return false;
    for (const Expr& atom : atoms(p)) {
      Polynomial rest;
      auto factor = p.coefficient_of(atom, &rest);
      if (factor && by_atom(atom, *factor, rest, depth - 1)) return true;
    }
    return false;
  }

  // Where all terms but the constant c are multiples of g, p >= 0 already where p > c mod g - g:
  // K - 16 - i >= 0 follows from i < K if 16 divides both.
  Polynomial with_slack(const Polynomial& p) const {
    Polynomial terms = p;
    terms.set({}, 0);
    const int64_t g = divisor(terms, facts_);
    if (g <= 1) return p;
    return p.plus(Polynomial(g - 1 - floor_mod(p.constant(), g))).value_or(p);
  }

  // Innermost first: loop counters are bounded by program ids and sizes, those by sizes.
  static std::vector<Expr> atoms(const Polynomial& p) {
    std::set<Expr, ExprLess> all;
    for (const auto& [m, c] : p.terms()) all.insert(m.begin(), m.end());
    return {all.rbegin(), all.rend()};
  }

  bool by_atom(const Expr& atom, const Polynomial& factor, const Polynomial& rest, int depth) {
    switch (atom.kind()) {
      case Kind::symbol:
        return by_symbol(atom, factor, rest, depth);
      case Kind::min:
      case Kind::max:
        return by_choice(atom, factor, rest, depth);
      case Kind::floordiv:
        return by_quotient(atom, factor, rest, depth);
      case Kind::mod:
        return by_remainder(atom, factor, rest, depth);
      case Kind::constant:
      case Kind::add:
      case Kind::sub:
      case Kind::mul:
        break;
    }
    return false;
  }

  // p[atom := bound] >= 0 where replacing can only lower p.
  bool with(const Polynomial& factor, const Expr& bound, const Polynomial& rest, int depth) {
    auto b = Polynomial::of(bound);
    auto product = b ? factor.times(*b) : std::nullopt;
    auto p = product ? rest.plus(*product) : std::nullopt;
    return p && nonnegative(*p, depth);
  }

  bool by_symbol(const Expr& atom, const Polynomial& factor, const Polynomial& rest, int depth) {
    const SymbolFact fact = fact_of(atom.symbol(), facts_);
    if (!fact.from && !fact.below) return false;
    const Interval sign = bounds(factor, facts_);
    if (sign.hi <= 0 && fact.below && with(factor, last_before(fact), rest, depth)) return true;
    return sign.lo >= 0 && fact.from && with(factor, *fact.from, rest, depth);
  }

  // The largest value below fact.below that a multiple can have.
  Expr last_before(const SymbolFact& fact) const {
    const int64_t g = std::gcd(divisor(*fact.below, facts_), fact.multiple_of);
    return *fact.below - Expr(std::max<int64_t>(g, 1));
  }

  // min(x, y) is x or y; where p falls with it, being <= x alone is enough. max mirrors it.
  bool by_choice(const Expr& atom, const Polynomial& factor, const Polynomial& rest, int depth) {
    const Interval sign = bounds(factor, facts_);
    const bool either = atom.kind() == Kind::min ? sign.hi <= 0 : sign.lo >= 0;
    const bool x = with(factor, atom.lhs(), rest, depth);
    if (x == either) return x;
    return with(factor, atom.rhs(), rest, depth);
  }

  // With q = floordiv(x, y) and y >= 1: p >= 0 iff y*p >= 1 - y, and y*q = x - mod(x, y).
  bool by_quotient(const Expr& q, const Polynomial& factor, const Polynomial& rest, int depth) {
    if (bounds(q.rhs(), facts_).lo < 1) return false;
    auto y = Polynomial::of(q.rhs());
    auto slack = y ? y->plus(Polynomial(-1)) : std::nullopt;
    auto scaled = slack ? rest.times(*y) : std::nullopt;
    scaled = scaled ? scaled->plus(*slack) : std::nullopt;
    return scaled && with(factor, exact_part(q), *scaled, depth);
  }

  // y * floordiv(x, y) without the division.
  Expr exact_part(const Expr& q) const {
    const int64_t d = divisor(q.lhs(), facts_);
    const bool exact = q.rhs().is_constant() && d % q.rhs().constant() == 0;
    return exact ? q.lhs() : q.lhs() - mod(q.lhs(), q.rhs());
  }

  // With y >= 1 mod(x, y) is at least 0, at most y - 1, and at most x where x >= 0.
  bool by_remainder(const Expr& r, const Polynomial& factor, const Polynomial& rest, int depth) {
    if (bounds(r.rhs(), facts_).lo < 1) return false;
    const Interval sign = bounds(factor, facts_);
    if (sign.lo >= 0) return with(factor, Expr(0), rest, depth);
    if (sign.hi > 0) return false;
    if (!r.rhs().is_constant() && with(factor, r.rhs() - 1, rest, depth)) return true;
    return bounds(r.lhs(), facts_).lo >= 0 && with(factor, r.lhs(), rest, depth);
  }

  const Facts& facts_;
  int budget_ = kBudget;
  std::set<Expr, ExprLess> seen_;
};

}  // namespace

bool prove_nonnegative(const Polynomial& p, const Facts& facts) { return Prover(facts).run(p); }

bool prove_le(const Expr& a, const Expr& b, const Facts& facts) {
  auto p = Polynomial::of(b - a);
  return p && prove_nonnegative(*p, facts);
}

}  // namespace tw
