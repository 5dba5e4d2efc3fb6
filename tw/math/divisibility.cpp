#include <numeric>

#include "tw/math/impl/analysis.h"
#include "tw/math/impl/arithmetic.h"
#include "tw/math/impl/polynomial.h"

namespace tw {
namespace {

using Kind = Expr::Kind;

int64_t gcd(int64_t a, int64_t b) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  if (a == kMin || b == kMin)
    return gcd(a == kMin ? int64_t{1} << 62 : a, b == kMin ? int64_t{1} << 62 : b);
  return std::gcd(a, b);
}

int64_t symbol_divisor(Symbol s, const Facts& facts) {
  const SymbolFact fact = fact_of(s, facts);
  if (fact.range.lo == fact.range.hi) return gcd(fact.range.lo, 0);
  return std::max<int64_t>(fact.multiple_of, 1);
}

int64_t quotient_divisor(const Expr& e, const Facts& facts) {
  const int64_t d = divisor(e.lhs(), facts);
  if (d == 0) return 0;
  if (!e.rhs().is_constant()) return 1;
  const int64_t k = gcd(e.rhs().constant(), 0);
  return d % k == 0 ? d / k : 1;
}

int64_t remainder_divisor(const Expr& e, const Facts& facts) {
  const int64_t d = divisor(e.lhs(), facts);
  const int64_t k = divisor(e.rhs(), facts);
  const bool exact = e.rhs().is_constant() && d % gcd(e.rhs().constant(), 0) == 0;
  return d == 0 || k == 0 || exact ? 0 : gcd(d, k);
}

int64_t atom_divisor(const Expr& e, const Facts& facts) {
  switch (e.kind()) {
    case Kind::constant:
      return gcd(e.constant(), 0);
    case Kind::symbol:
      return symbol_divisor(e.symbol(), facts);
    case Kind::floordiv:
      return quotient_divisor(e, facts);
    case Kind::mod:
      return remainder_divisor(e, facts);
    case Kind::add:
    case Kind::sub:
    case Kind::min:
    case Kind::max:
      return gcd(divisor(e.lhs(), facts), divisor(e.rhs(), facts));
    case Kind::mul: {
      const int64_t a = divisor(e.lhs(), facts), b = divisor(e.rhs(), facts);
      return checked_mul(a, b).value_or(a);
    }
  }
  return 1;
}

}  // namespace

int64_t divisor(const Monomial& m, int64_t c, const Facts& facts) {
  int64_t d = gcd(c, 0);
  for (const Expr& atom : m) {
    const int64_t factor = atom_divisor(atom, facts);
    // A divisor of part of a product divides the product, so an overflow only loses a factor.
    d = checked_mul(d, factor).value_or(d);
  }
  return d;
}

int64_t divisor(const Polynomial& p, const Facts& facts) {
  int64_t d = 0;
  for (const auto& [m, c] : p.terms()) d = gcd(d, divisor(m, c, facts));
  return d;
}

int64_t divisor(const Expr& e, const Facts& facts) {
  const bool sum = e.kind() == Kind::add || e.kind() == Kind::sub || e.kind() == Kind::mul;
  auto p = sum ? Polynomial::of(e) : std::nullopt;
  return p ? divisor(*p, facts) : atom_divisor(e, facts);
}

}  // namespace tw
