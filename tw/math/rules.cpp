#include "tw/math/rules.h"

#include <map>
#include <vector>

#include "tw/math/impl/analysis.h"
#include "tw/math/impl/rewrites.h"

namespace tw {
namespace {

// Wildcards of patterns are symbols with negative ids. A dim matches any expression, a loop only a
// constant; one wildcard matches equal expressions.
Expr any(int n) { return Expr::symbol(SymbolKind::dim, -1 - n); }
Expr literal(int n) { return Expr::symbol(SymbolKind::loop, -1 - n); }

class Match {
 public:
  explicit Match(const Facts& facts) : facts_(facts) {}

  bool bind(const Expr& pattern, const Expr& e) {
    if (pattern.kind() == Expr::Kind::symbol) {
      const Symbol s = pattern.symbol();
      if (s.kind == SymbolKind::loop && !e.is_constant()) return false;
      return bound_.try_emplace(s, e).first->second == e;
    }
    if (pattern.is_constant()) return pattern == e;
    return pattern.kind() == e.kind() && bind(pattern.lhs(), e.lhs()) &&
           bind(pattern.rhs(), e.rhs());
  }
  Expr fill(const Expr& pattern) const {
    return substitute(pattern, [&](Symbol s) { return std::optional(bound_.at(s)); });
  }

  // What conditions ask, of patterns.
  bool le(const Expr& a, const Expr& b) const { return prove_le(fill(a), fill(b), facts_); }
  bool lt(const Expr& a, const Expr& b) const { return le(a + 1, b); }
  bool divides(const Expr& d, const Expr& e) const {
    return divisor(fill(e), facts_) % fill(d).constant() == 0;
  }

 private:
  const Facts& facts_;
  std::map<Symbol, Expr> bound_;
};

using Condition = std::function<bool(const Match&)>;

SimplifyRule rule(const char* name, const Expr& from, const Expr& to, const Condition& when) {
  auto apply = [=](const Expr& e, const Facts& facts) -> std::optional<Expr> {
    Match m(facts);
    if (!m.bind(from, e) || !when(m)) return std::nullopt;
    return m.fill(to);
  };
  return {name, apply};
}

std::optional<Expr> known_value(const Expr& e, const Facts& facts) {
  const Interval r = bounds(e, facts);
  if (e.is_constant() || r.lo != r.hi) return std::nullopt;
  return Expr(r.lo);
}

std::vector<SimplifyRule> build_rules() {
  const Expr x = any(0), a = literal(0), b = literal(1), c = literal(2);
  auto always = [](const Match&) { return true; };
  auto nonzero = [=](const Match& m) { return m.lt(0, x) || m.lt(x, 0); };
  auto nested = [=](const Match& m) { return m.divides(b, a); };
  auto positive = [=](const Match& m) { return m.lt(0, c); };
  // clang-format off
  return {
    {"known_value", known_value, true},
    rule("equal_quotient",   floordiv(x, x),                  1,                         nonzero),
    rule("nested_remainder", mod(mod(x, a), b),               mod(x, b),                 nested),
    rule("nested_quotient",  floordiv(floordiv(x, a), c),     floordiv(x, a * c),        positive),
    rule("quotient_of_sum",  floordiv(floordiv(x, a) + b, c), floordiv(x + a * b, a * c), positive),
    rule("negated_quotient", floordiv(x, -1),                 0 - x,                     always),
    {"multiply_quotient_out", multiply_quotient_out},
    {"split_quotient", split_quotient},
    {"split_remainder", split_remainder, true},
    {"reduce_quotient", reduce_quotient},
    {"reduce_remainder", reduce_remainder},
    {"factor_choice", factor_choice},
    {"canonical_choice", canonical_choice, true},
    {"canonical_sum", canonical_sum, true},
  };
  // clang-format on
}

}  // namespace

std::span<const SimplifyRule> simplify_rules() {
  static const std::vector<SimplifyRule> rules = build_rules();
  return rules;
}

}  // namespace tw
