#pragma once

#include <compare>
#include <map>
#include <optional>
#include <vector>

#include "tw/math/expr.h"

namespace tw {

/// A total order on expressions: by size, then shape, then leaves.
std::strong_ordering compare(const Expr& a, const Expr& b);

struct ExprLess {
  bool operator()(const Expr& a, const Expr& b) const { return compare(a, b) < 0; }
};

/// A product of atoms (symbols, floordiv, mod, min and max nodes), sorted; empty is 1.
using Monomial = std::vector<Expr>;
struct MonomialLess {
  bool operator()(const Monomial& a, const Monomial& b) const;
};

/// A sum of integer multiples of monomials, coefficients not 0. An operation whose coefficients
/// leave int64, or whose terms become too many, gives nullopt.
class Polynomial {
 public:
  using Terms = std::map<Monomial, int64_t, MonomialLess>;

  Polynomial() = default;
  explicit Polynomial(int64_t c) { set({}, c); }
  /// The sum of products equal to e.
  static std::optional<Polynomial> of(const Expr& e);

  const Terms& terms() const { return terms_; }
  int64_t constant() const;
  bool is_constant() const { return terms_.empty() || (terms_.size() == 1 && constant() != 0); }
  void set(const Monomial& m, int64_t c);
  [[nodiscard]] bool add(const Monomial& m, int64_t c);  ///< false on overflow

  /// this + factor * other
  std::optional<Polynomial> plus(const Polynomial& other, int64_t factor = 1) const;
  std::optional<Polynomial> times(const Polynomial& other) const;

  /// The a of this = a * atom + b, with b; nullopt when atom occurs squared.
  std::optional<Polynomial> coefficient_of(const Expr& atom, Polynomial* rest) const;

  bool operator==(const Polynomial&) const = default;

 private:
  Terms terms_;
};

/// p as an expression in canonical order, terms of one coefficient drawn together: x*64 + y*64 is
/// (x + y)*64, which is always the smaller. Sums that are equal as polynomials give the same text.
Expr to_expr(const Polynomial& p);
Expr to_expr(const Monomial& m);

/// The q with q * y == p where y is a constant or an atom; nullopt when there is none.
std::optional<Polynomial> exact_quotient(const Polynomial& p, const Expr& y);

}  // namespace tw
