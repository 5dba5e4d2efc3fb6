#include <algorithm>
#include <numeric>

#include "tw/math/impl/analysis.h"
#include "tw/math/impl/rewrites.h"

namespace tw {
namespace {

using Kind = Expr::Kind;

bool is_choice(const Expr& e) { return e.kind() == Kind::min || e.kind() == Kind::max; }

void operands(const Expr& e, Kind kind, std::vector<Expr>* out) {
  if (e.kind() != kind) return out->push_back(e);
  operands(e.lhs(), kind, out);
  operands(e.rhs(), kind, out);
}

// Constants last, as builders put them.
bool before(const Expr& a, const Expr& b) {
  if (a.is_constant() != b.is_constant()) return b.is_constant();
  return compare(a, b) < 0;
}

// a makes b needless in a chain of this kind.
bool decides(const Expr& a, const Expr& b, Kind kind, const Facts& facts) {
  return kind == Kind::min ? prove_le(a, b, facts) : prove_le(b, a, facts);
}

// The terms that a and b share.
Polynomial common_terms(const Polynomial& a, const Polynomial& b) {
  Polynomial common;
  for (const auto& [m, c] : a.terms()) {
    auto it = b.terms().find(m);
    if (it != b.terms().end() && it->second == c) common.set(m, c);
  }
  return common;
}

int64_t coefficient_gcd(const Polynomial& a, const Polynomial& b) {
  int64_t g = 0;
  for (const Polynomial* p : {&a, &b})
    for (const auto& [m, c] : p->terms())
      if (c != std::numeric_limits<int64_t>::min()) g = std::gcd(g, c);
  return g;
}

}  // namespace

std::optional<Expr> canonical_choice(const Expr& e, const Facts& facts) {
  if (!is_choice(e)) return std::nullopt;
  std::vector<Expr> all, kept;
  operands(e, e.kind(), &all);
  std::sort(all.begin(), all.end(), before);
  for (const Expr& candidate : all) {
    auto decided = [&](const Expr& k) { return decides(k, candidate, e.kind(), facts); };
    if (std::any_of(kept.begin(), kept.end(), decided)) continue;
    std::erase_if(kept, [&](const Expr& k) { return decides(candidate, k, e.kind(), facts); });
    kept.push_back(candidate);
  }
  Expr chain = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) chain = Expr::binary(e.kind(), chain, kept[i]);
  return chain;
}

std::optional<Expr> factor_choice(const Expr& e, const Facts&) {
  if (!is_choice(e)) return std::nullopt;
  auto a = Polynomial::of(e.lhs()), b = Polynomial::of(e.rhs());
  if (!a || !b) return std::nullopt;
  const Polynomial common = common_terms(*a, *b);
  auto x = a->plus(common, -1), y = b->plus(common, -1);
  if (!x || !y) return std::nullopt;
  const int64_t g = std::max<int64_t>(coefficient_gcd(*x, *y), 1);
  auto xs = exact_quotient(*x, Expr(g)), ys = exact_quotient(*y, Expr(g));
  if (!xs || !ys) return std::nullopt;
  return Expr::binary(e.kind(), to_expr(*xs), to_expr(*ys)) * Expr(g) + to_expr(common);
}

}  // namespace tw
