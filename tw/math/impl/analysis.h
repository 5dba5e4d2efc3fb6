#pragma once

#include "tw/math/facts.h"
#include "tw/math/impl/polynomial.h"

namespace tw {

/// What is known of s, defaults filled in (dims and pids >= 0).
SymbolFact fact_of(Symbol s, const Facts& facts);

Interval bounds(const Polynomial& p, const Facts& facts);
/// A divisor of every value of c * m.
int64_t divisor(const Monomial& m, int64_t c, const Facts& facts);
int64_t divisor(const Polynomial& p, const Facts& facts);
/// True only when p >= 0 for all values under the facts.
bool prove_nonnegative(const Polynomial& p, const Facts& facts);

// Arithmetic of intervals: each holds every value of the operation on members of its operands.
Interval add(Interval a, Interval b);
Interval negate(Interval a);
Interval mul(Interval a, Interval b);
Interval floordiv(Interval a, Interval b);
Interval mod(Interval a, Interval b);
Interval intersect(Interval a, Interval b);

}  // namespace tw
