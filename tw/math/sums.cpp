#include "tw/math/impl/analysis.h"
#include "tw/math/impl/rewrites.h"

namespace tw {
namespace {

using Kind = Expr::Kind;

bool is_sum(const Expr& e) {
  return e.kind() == Kind::add || e.kind() == Kind::sub || e.kind() == Kind::mul;
}

bool not_zero(const Expr& e, const Facts& facts) {
  const Interval r = bounds(e, facts);
  return r.lo > 0 || r.hi < 0;
}

// p with each q*y of q = floordiv(x, y) replaced by x - mod(x, y); nothing where no y is there.
std::optional<Polynomial> without_quotient(const Polynomial& p, const Expr& q, const Facts& facts) {
  Polynomial rest;
  auto factor = p.coefficient_of(q, &rest);
  auto times = factor ? exact_quotient(*factor, q.rhs()) : std::nullopt;
  if (!times || !not_zero(q.rhs(), facts)) return std::nullopt;
  const bool exact = q.rhs().is_constant() && divisor(q.lhs(), facts) % q.rhs().constant() == 0;
  auto product = Polynomial::of(exact ? q.lhs() : q.lhs() - mod(q.lhs(), q.rhs()));
  if (product) product = times->times(*product);
  return product ? rest.plus(*product) : std::nullopt;
}

}  // namespace

std::optional<Expr> canonical_sum(const Expr& e, const Facts&) {
  if (!is_sum(e)) return std::nullopt;
  auto p = Polynomial::of(e);
  if (!p) return std::nullopt;
  return to_expr(*p);
}

std::optional<Expr> multiply_quotient_out(const Expr& e, const Facts& facts) {
  auto p = is_sum(e) ? Polynomial::of(e) : std::nullopt;
  if (!p) return std::nullopt;
  std::optional<Expr> best;
  for (const auto& [m, c] : p->terms())
    for (const Expr& atom : m) {
      if (atom.kind() != Kind::floordiv) continue;
      auto without = without_quotient(*p, atom, facts);
      if (!without) continue;
      const Expr candidate = to_expr(*without);
      if (!best || candidate.size() < best->size()) best = candidate;
    }
  return best;
}

}  // namespace tw
