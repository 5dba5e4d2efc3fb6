#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "tw/ir/program.h"

namespace tw {

class TraceState;

/// An integer expression over dimensions, instance coordinates and loop counters. It is immutable
/// and never a variable: a carried scalar is a rank-0 Tile. `/` and `%` floor (those of Tiles
/// truncate); by 0 they give 0. What is wrong with it (two programs mixed, too large) is reported
/// at the line that uses it.
class Index {
 public:
  template <std::integral C>
  requires(!std::same_as<C, bool>) Index(C c) : expr_(static_cast<int64_t>(c)) {
    if (!std::in_range<int64_t>(+c)) problem_ = "an index constant does not fit in 64 bits";
  }
  Index(Expr expr, std::shared_ptr<TraceState> owner)
      : expr_(std::move(expr)), owner_(std::move(owner)) {}
  Index(const Index&) = default;
  Index& operator=(const Index&) = delete;

  const Expr& expr() const { return expr_; }
  const std::shared_ptr<TraceState>& owner() const { return owner_; }  ///< null for constants
  const char* problem() const { return problem_; }                     ///< null when sound

  /// The two put together by f; what is wrong with either stays.
  static Index combine(Expr (*f)(const Expr&, const Expr&), const Index& a, const Index& b);

 private:
  Expr expr_;
  std::shared_ptr<TraceState> owner_;
  const char* problem_ = nullptr;
};

Index operator+(const Index& a, const Index& b);
Index operator-(const Index& a, const Index& b);
Index operator-(const Index& a);
Index operator*(const Index& a, const Index& b);
Index operator/(const Index& a, const Index& b);
Index operator%(const Index& a, const Index& b);
Index cdiv(const Index& a, const Index& b);  ///< a / b rounded up
Index min(const Index& a, const Index& b);
Index max(const Index& a, const Index& b);
constexpr int64_t cdiv(int64_t a, int64_t b) {
  return b == 0 ? 0 : a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0);
}

/// A comparison of two Index values, which the whole instance takes together: for Trace::when only.
class Cond {
 public:
  Cond(CompareKind kind, const Index& a, const Index& b) : kind_(kind), a_(a), b_(b) {}
  CompareKind kind() const { return kind_; }
  const Index& a() const { return a_; }
  const Index& b() const { return b_; }

  template <class B>
  requires std::same_as<B, bool>
  explicit operator B() const {
    static_assert(sizeof(B) == 0,
                  "tilewright: a Cond has no truth value while tracing; use k.when(cond, then, "
                  "otherwise) for a branch on the device, or compare C++ integers");
    return false;
  }

 private:
  CompareKind kind_;
  Index a_, b_;
};

Cond operator<(const Index& a, const Index& b);
Cond operator<=(const Index& a, const Index& b);
Cond operator>(const Index& a, const Index& b);
Cond operator>=(const Index& a, const Index& b);
Cond eq(const Index& a, const Index& b);
Cond ne(const Index& a, const Index& b);

}  // namespace tw
