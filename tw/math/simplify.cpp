#include <unordered_map>

#include "tw/math/impl/arithmetic.h"
#include "tw/math/rules.h"

namespace tw {
namespace {

using Kind = Expr::Kind;

bool is_leaf(const Expr& e) { return e.kind() == Kind::constant || e.kind() == Kind::symbol; }

int64_t nodes_under_division(const Expr& e) {
  if (is_leaf(e)) return 0;
  const bool division = e.kind() == Kind::floordiv || e.kind() == Kind::mod;
  const int128 below =
      static_cast<int128>(nodes_under_division(e.lhs())) + nodes_under_division(e.rhs());
  return clamp_to_int64(below + (division ? e.size() : 0));
}

class Simplifier {
 public:
  Simplifier(std::span<const SimplifyRule> rules, const Facts& facts)
      : rules_(rules), facts_(facts) {}

  // The result is a fixed point: its parts are results, and no rule takes it lower.
  Expr run(Expr e) {
    if (e.is_constant()) return e;
    auto known = done_.find(e);
    if (known != done_.end()) return known->second;
    const Expr start = e;
    while (auto next = step(e)) e = *next;
    done_.emplace(start, e);
    done_.emplace(e, e);
    return e;
  }

 private:
  std::optional<Expr> step(const Expr& e) {
    if (!is_leaf(e)) {
      const Expr a = run(e.lhs()), b = run(e.rhs());
      if (!(a == e.lhs() && b == e.rhs())) return Expr::binary(e.kind(), a, b);
    }
    for (const SimplifyRule& rule : rules_)
      if (auto next = rule.apply(e, facts_); next && is_taken(rule, e, *next)) return next;
    return std::nullopt;
  }

  static bool is_taken(const SimplifyRule& rule, const Expr& from, const Expr& to) {
    if (to.size() != from.size()) return to.size() < from.size();
    const int64_t a = nodes_under_division(from), b = nodes_under_division(to);
    return b < a || (b == a && rule.normal_form && !(from == to));
  }

  struct Hash {
    size_t operator()(const Expr& e) const { return e.hash(); }
  };

  std::span<const SimplifyRule> rules_;
  const Facts& facts_;
  std::unordered_map<Expr, Expr, Hash> done_;
};

}  // namespace

Expr simplify_with(std::span<const SimplifyRule> rules, const Expr& e, const Facts& facts) {
  return Simplifier(rules, facts).run(e);
}

Expr simplify(const Expr& e, const Facts& facts) {
  return simplify_with(simplify_rules(), e, facts);
}

}  // namespace tw
