#pragma once

#include <limits>
#include <map>
#include <optional>

#include "tw/math/expr.h"

namespace tw {

/// A closed interval of integers; the limits stand for "unbounded".
struct Interval {
  static constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t lo = kMin, hi = kMax;
  bool operator==(const Interval&) const = default;
};

/// What is known of one symbol: its range, that value mod multiple_of is 0, and from <= value <
/// below where those are given. They say how a coordinate follows the sizes: pid0 of a grid axis of
/// cdiv(M, 64) has below = cdiv(M, 64), a loop over [lo, hi) has from = lo and below = hi.
/// Neither may depend on the symbol itself, directly or through the facts of its symbols.
struct SymbolFact {
  Interval range = {};
  int64_t multiple_of = 1;
  std::optional<Expr> from = std::nullopt;
  std::optional<Expr> below = std::nullopt;
};

/// Facts about symbols. Dims and pids are >= 0 even when nothing is said of them; a loop counter
/// may be anything.
using Facts = std::map<Symbol, SymbolFact>;

/// An interval that holds every value of e under the facts (sound, not always tight; saturates,
/// never overflows).
Interval bounds(const Expr& e, const Facts& facts);

/// The largest d >= 1 proved to divide every value of e (0 when e is always 0).
int64_t divisor(const Expr& e, const Facts& facts);

/// True only when a <= b for all values under the facts: a bounded search that eliminates symbols
/// by their bounds, splits min and max, and multiplies divisions out.
bool prove_le(const Expr& a, const Expr& b, const Facts& facts);

/// An equal expression, never larger in node count: sums of products in canonical order, cancelled
/// terms, divisions and moduli by known divisors removed, min/max decided by bounds. Idempotent.
Expr simplify(const Expr& e, const Facts& facts);

}  // namespace tw
