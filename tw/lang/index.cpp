#include "tw/lang/index.h"

namespace tw {
namespace {

// Larger expressions come from tracing loops that double an Index; no kernel needs them.
constexpr int64_t kMaxNodes = 1000;

Expr add(const Expr& a, const Expr& b) { return a + b; }
Expr subtract(const Expr& a, const Expr& b) { return a - b; }
Expr multiply(const Expr& a, const Expr& b) { return a * b; }
Expr divide(const Expr& a, const Expr& b) { return floordiv(a, b); }
Expr modulus(const Expr& a, const Expr& b) { return mod(a, b); }
Expr divide_up(const Expr& a, const Expr& b) { return cdiv(a, b); }
Expr smaller(const Expr& a, const Expr& b) { return min(a, b); }
Expr larger(const Expr& a, const Expr& b) { return max(a, b); }

}  // namespace

Index Index::combine(Expr (*f)(const Expr&, const Expr&), const Index& a, const Index& b) {
  const char* problem = a.problem_ != nullptr ? a.problem_ : b.problem_;
  if (problem == nullptr && a.owner_ && b.owner_ && a.owner_ != b.owner_)
    problem = "an index expression mixes two programs";
  Index r(problem == nullptr ? f(a.expr_, b.expr_) : Expr(), a.owner_ ? a.owner_ : b.owner_);
  if (problem == nullptr && r.expr_.size() > kMaxNodes)
    problem = "an index expression grew past 1000 nodes";
  r.problem_ = problem;
  return r;
}

Index operator+(const Index& a, const Index& b) { return Index::combine(add, a, b); }
Index operator-(const Index& a, const Index& b) { return Index::combine(subtract, a, b); }
Index operator-(const Index& a) { return Index(0) - a; }
Index operator*(const Index& a, const Index& b) { return Index::combine(multiply, a, b); }
Index operator/(const Index& a, const Index& b) { return Index::combine(divide, a, b); }
Index operator%(const Index& a, const Index& b) { return Index::combine(modulus, a, b); }
Index cdiv(const Index& a, const Index& b) { return Index::combine(divide_up, a, b); }
Index min(const Index& a, const Index& b) { return Index::combine(smaller, a, b); }
Index max(const Index& a, const Index& b) { return Index::combine(larger, a, b); }

Cond operator<(const Index& a, const Index& b) { return {CompareKind::lt, a, b}; }
Cond operator<=(const Index& a, const Index& b) { return {CompareKind::le, a, b}; }
Cond operator>(const Index& a, const Index& b) { return {CompareKind::lt, b, a}; }
Cond operator>=(const Index& a, const Index& b) { return {CompareKind::le, b, a}; }
Cond eq(const Index& a, const Index& b) { return {CompareKind::eq, a, b}; }
Cond ne(const Index& a, const Index& b) { return {CompareKind::ne, a, b}; }

}  // namespace tw
