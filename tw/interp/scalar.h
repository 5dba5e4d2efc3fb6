#pragma once

#include <cstdint>

#include "tw/ir/program.h"

namespace tw {

/// One element of a tile, of any dtype: floats live in `f`, integers and b1 in `i` (u64 modulo
/// 2^64). `bound` and `undecided` are those of the bounded mode; both stay 0 in exact mode.
struct Scalar {
  double f = 0;
  int64_t i = 0;
  double bound = 0;
  bool undecided = false;

  static Scalar of_float(double f, double bound = 0) { return {f, 0, bound, false}; }
  static Scalar of_int(int64_t i) { return {0, i, 0, false}; }
  static Scalar unknown() { return {0, 0, 0, true}; }
};

/// The value a float dtype stores for v (to nearest, ties to even).
double round_to(DType t, double v);
/// v modulo 2^bits of an integer dtype; v != 0 of b1 is 1.
int64_t wrap(DType t, int64_t v);

Scalar from_number(DType t, const Number& n);
/// Storage bits of an element and back.
uint64_t to_bits(DType t, const Scalar& a);
Scalar from_bits(DType t, uint64_t bits);

/// Where arithmetic and sums of `t` happen: f32 for narrower floats, else t itself.
DType compute_type(DType t);

/// Ops on one element in the exact dtype `t` of the operands. Compares give b1. `exp` and its like
/// round the double result of the host's libm.
Scalar exact_unary(Opcode code, DType t, const Scalar& a);
Scalar exact_binary(Opcode code, DType t, const Scalar& a, const Scalar& b);
/// `random` feeds stochastic rounding.
Scalar exact_cast(DType from, DType to, const CastAttr& how, uint32_t random, const Scalar& a);
Scalar exact_bitcast(DType from, DType to, const Scalar& a);

}  // namespace tw
