#pragma once

#include <map>
#include <random>
#include <vector>

#include "tw/math/facts.h"

namespace tw::test {

using Assignment = std::map<Symbol, int64_t>;

/// e by the definitions of its operators, in 128 bits, apart from tw::evaluate; nothing where a
/// step leaves int64.
std::optional<int64_t> value_of(const Expr& e, const Assignment& values);

/// Random expressions, and random facts with several assignments that they all hold for.
class RandomExprs {
 public:
  explicit RandomExprs(unsigned seed) : random_(seed) {}

  Expr expr(int depth);
  /// Constants up to the limits of int64 from now on.
  void use_huge_constants() { huge_ = true; }
  /// New facts and assignments of the symbols that expr() uses.
  void new_world();
  const Facts& facts() const { return facts_; }
  const std::vector<Assignment>& assignments() const { return assignments_; }
  int64_t pick(int64_t lo, int64_t hi);

 private:
  Expr leaf();
  Expr quotient_and_remainder(int depth);
  Expr constant();
  SymbolFact fact(Symbol s, int64_t value);
  std::optional<Expr> bound(Symbol s, bool upper, int64_t value);
  bool holds(const Assignment& a) const;
  Assignment variation();

  std::mt19937_64 random_;
  bool huge_ = false;
  Facts facts_;
  std::vector<Assignment> assignments_;
};

}  // namespace tw::test
