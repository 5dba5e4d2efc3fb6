#include "tw/math/impl/polynomial.h"

#include <algorithm>

#include "tw/math/impl/arithmetic.h"

namespace tw {
namespace {

using Kind = Expr::Kind;

constexpr size_t kMaxTerms = 64;  // beyond this an expansion helps no proof

// Constants are last among leaves, as builders put them.
int rank(Kind k) {
  switch (k) {
    case Kind::symbol:
      return 0;
    case Kind::add:
      return 1;
    case Kind::sub:
      return 2;
    case Kind::mul:
      return 3;
    case Kind::floordiv:
      return 4;
    case Kind::mod:
      return 5;
    case Kind::min:
      return 6;
    case Kind::max:
      return 7;
    case Kind::constant:
      return 8;
  }
  return 9;
}

// |c| as unsigned, so that the most negative value has one too.
uint64_t magnitude(int64_t c) {
  return c < 0 ? uint64_t{0} - static_cast<uint64_t>(c) : static_cast<uint64_t>(c);
}

bool is_positive_int64(uint64_t c) {
  return c > 0 && c <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

struct Term {
  int64_t coefficient;
  Expr unit;
};

Expr scaled(const Expr& unit, int64_t c) { return c == 1 ? unit : unit * Expr(c); }

// A sum begins with a term that needs no sign: a positive one, else the constant, else a negative
// coefficient that is written anyway.
Expr build_sum(std::vector<Term> terms, int64_t constant) {
  if (terms.empty()) return Expr(constant);
  auto head = std::find_if(terms.begin(), terms.end(), [](auto& t) { return t.coefficient > 0; });
  Expr sum;
  if (head == terms.end() && constant == 0) {
    head = std::find_if(terms.begin(), terms.end(), [](auto& t) { return t.coefficient != -1; });
    if (head == terms.end()) head = terms.begin();
    sum = head->coefficient == -1 ? Expr(0) - head->unit : scaled(head->unit, head->coefficient);
    terms.erase(head);
  } else if (head == terms.end()) {
    sum = Expr(constant);
    constant = 0;
  } else {
    sum = scaled(head->unit, head->coefficient);
    terms.erase(head);
  }
  for (const Term& t : terms) {
    const bool negate = t.coefficient < 0 && t.coefficient != std::numeric_limits<int64_t>::min();
    sum = negate ? sum - scaled(t.unit, -t.coefficient) : sum + scaled(t.unit, t.coefficient);
  }
  return sum + Expr(constant);
}

}  // namespace

std::strong_ordering compare(const Expr& a, const Expr& b) {
  if (a == b) return std::strong_ordering::equal;
  if (a.size() != b.size()) return a.size() <=> b.size();
  if (a.kind() != b.kind()) return rank(a.kind()) <=> rank(b.kind());
  if (a.kind() == Kind::symbol) return a.symbol() <=> b.symbol();
  if (a.kind() == Kind::constant) {
    const uint64_t ma = magnitude(a.constant()), mb = magnitude(b.constant());
    return ma != mb ? ma <=> mb : b.constant() <=> a.constant();
  }
  auto left = compare(a.lhs(), b.lhs());
  return left != 0 ? left : compare(a.rhs(), b.rhs());
}

bool MonomialLess::operator()(const Monomial& a, const Monomial& b) const {
  if (a.size() != b.size()) return a.size() < b.size();
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), ExprLess());
}

int64_t Polynomial::constant() const {
  auto it = terms_.find({});
  return it == terms_.end() ? 0 : it->second;
}

void Polynomial::set(const Monomial& m, int64_t c) {
  if (c == 0)
    terms_.erase(m);
  else
    terms_[m] = c;
}

bool Polynomial::add(const Monomial& m, int64_t c) {
  auto it = terms_.find(m);
  auto sum = checked_add(it == terms_.end() ? 0 : it->second, c);
  if (!sum) return false;
  set(m, *sum);
  return terms_.size() <= kMaxTerms;
}

std::optional<Polynomial> Polynomial::plus(const Polynomial& other, int64_t factor) const {
  Polynomial sum = *this;
  for (const auto& [m, c] : other.terms_) {
    auto scaled = checked_mul(c, factor);
    if (!scaled || !sum.add(m, *scaled)) return std::nullopt;
  }
  return sum;
}

std::optional<Polynomial> Polynomial::times(const Polynomial& other) const {
  Polynomial product;
  for (const auto& [ma, ca] : terms_)
    for (const auto& [mb, cb] : other.terms_) {
      Monomial m;
      std::merge(ma.begin(), ma.end(), mb.begin(), mb.end(), std::back_inserter(m), ExprLess());
      auto c = checked_mul(ca, cb);
      if (!c || !product.add(m, *c)) return std::nullopt;
    }
  return product;
}

std::optional<Polynomial> Polynomial::of(const Expr& e) {
  if (e.is_constant()) return Polynomial(e.constant());
  if (e.kind() != Kind::add && e.kind() != Kind::sub && e.kind() != Kind::mul) {
    Polynomial p;
    p.set({e}, 1);
    return p;
  }
  auto a = of(e.lhs()), b = of(e.rhs());
  if (!a || !b) return std::nullopt;
  if (e.kind() == Kind::mul) return a->times(*b);
  return a->plus(*b, e.kind() == Kind::sub ? -1 : 1);
}

std::optional<Polynomial> Polynomial::coefficient_of(const Expr& atom, Polynomial* rest) const {
  Polynomial factor;
  *rest = {};
  for (const auto& [m, c] : terms_) {
    const auto n = std::count(m.begin(), m.end(), atom);
    if (n > 1) return std::nullopt;
    Monomial without = m;
    std::erase(without, atom);
    (n == 1 ? factor : *rest).set(without, c);
  }
  return factor;
}

Expr to_expr(const Monomial& m) {
  Expr product = 1;
  for (const Expr& atom : m) product = product.is_constant() ? atom : product * atom;
  return product;
}

// Groups stand in the order of their first monomials, so that leaving out the last term of a sum
// leaves a sum that is written the same way: the parts of a canonical sum are canonical.
Expr to_expr(const Polynomial& p) {
  std::vector<std::pair<uint64_t, std::vector<Term>>> groups;
  for (const auto& [m, c] : p.terms()) {
    if (m.empty()) continue;
    const uint64_t k = magnitude(c);
    auto same = [&](const auto& g) { return g.first == k && is_positive_int64(k) && k != 1; };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) group = groups.insert(group, {k, {}});
    group->second.push_back({c, to_expr(m)});
  }
  std::vector<Term> terms;
  for (auto& [k, group] : groups) {
    if (group.size() == 1) {
      terms.push_back(group[0]);
      continue;
    }
    const bool all_negative =
        std::all_of(group.begin(), group.end(), [](const Term& t) { return t.coefficient < 0; });
    for (Term& t : group) t.coefficient = (t.coefficient < 0) != all_negative ? -1 : 1;
    const int64_t scale = static_cast<int64_t>(k) * (all_negative ? -1 : 1);
    terms.push_back({scale, build_sum(std::move(group), 0)});
  }
  return build_sum(std::move(terms), p.constant());
}

std::optional<Polynomial> exact_quotient(const Polynomial& p, const Expr& y) {
  Polynomial q;
  for (const auto& [m, c] : p.terms()) {
    if (y.is_constant()) {
      const int64_t k = y.constant();
      if (k == 0 || k == -1 || c % k != 0) return std::nullopt;
      q.set(m, c / k);
      continue;
    }
    auto at = std::find(m.begin(), m.end(), y);
    if (at == m.end()) return std::nullopt;
    Monomial without = m;
    without.erase(without.begin() + (at - m.begin()));
    q.set(without, c);
  }
  return q;
}

}  // namespace tw
