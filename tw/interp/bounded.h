#pragma once

#include <span>

#include "tw/interp/scalar.h"

namespace tw {

/// The ops of scalar.h on elements with error bounds: the result's bound holds for every backend
/// whose ops have the errors that ops.def states, if those of the operands do. Operands whose
/// bounds are 0 give the exact result, bound 0, where the op is correctly rounded.
///
/// Values with a bound are doubles, not rounded to the dtype. NaN and infinities are exact.
Scalar bounded_unary(Opcode code, DType t, const Scalar& a);
/// `loose`: the result need not be rounded here: an addition may take this product unrounded
/// (contraction), or the op stands in a combiner, whose order is open.
Scalar bounded_binary(Opcode code, DType t, const Scalar& a, const Scalar& b, bool loose);
/// One result of folding a combiner region, from folds in two orders.
Scalar either_order(DType t, const Scalar& forward, const Scalar& backward);
Scalar bounded_where(const Scalar& mask, const Scalar& a, const Scalar& b);
Scalar bounded_cast(DType from, DType to, const CastAttr& how, uint32_t random, const Scalar& a);
Scalar bounded_bitcast(DType from, DType to, const Scalar& a);

/// acc (of dtype t, kept apart for its place in the order) plus the products a[k] * b[k] of dtypes
/// whose products `t`'s arithmetic takes, in any order, contracted or not. Error 8 sqrt(K) u
/// sum|terms|, none when every partial sum in every order is representable; and what the precision
/// leaves of the products.
Scalar bounded_dot(DType t, Precision precision, std::span<const Scalar> a,
                   std::span<const Scalar> b, const Scalar& acc);
/// The terms folded in any order, accumulated in compute_type(t) and rounded once.
Scalar bounded_sum(DType t, std::span<const Scalar> terms);
Scalar bounded_product(DType t, std::span<const Scalar> terms);

/// Room for an element whose float value `v` (in double) came from operands within e of it, before
/// any rounding: adds `relative` |v| and `absolute` smallest subnormals of t, decides overflow.
Scalar settle(DType t, double v, double e, double relative, double absolute);

}  // namespace tw
