#pragma once

#include <cstdint>

#include "tw/ir/program.h"
#include "tw/num/dtype.h"

namespace tw::check {

/// Kinds of kernels, by how their errors come about.
enum class Family : uint8_t {
  exact,        ///< copies, min, max, argmax, integers: no rounding, so no error
  elementwise,  ///< a fixed number of roundings an element
  reduction,    ///< sums and means
  norm,         ///< layernorm, rmsnorm: sums, then one rsqrt
  softmax,      ///< sums of exponentials, then one quotient
  gemm          ///< sums of products, maybe with an elementwise epilogue
};

/// What the error bound of a kernel depends on, beside the values.
struct Accuracy {
  Family family = Family::elementwise;
  DType out = f32;         ///< type of the result
  DType accumulate = f32;  ///< type in which terms are added (f32 for f16, bf16 and f32 data)
  Precision precision = Precision::ieee;  ///< of the products
  int64_t terms = 1;                      ///< K: how many terms are added up to one element
  double function_ulps = 0;  ///< stated ulps of the functions beyond the family's own, summed
};

/// The accumulator's type for data of type t: f64 for f64, f32 for narrower floats, t for others.
DType accumulator_of(DType t);

/// Distance of neighbouring values of float type t at magnitude |x| (of the subnormals near 0); 0
/// for other types.
double ulp(DType t, double x);

/// Largest error that a result may have whose exact value is `reference` and whose terms have
/// magnitudes summing to `sum_abs`:
///   ulp_out(reference) + 8 sqrt(K) (u sum_abs + eta) + (2 u f + p) sum_abs
/// with u the unit roundoff of the accumulator, eta the largest error of a product that is
/// subnormal in it (half the least subnormal; families that add products: gemm, norm; Higham,
/// Accuracy and Stability of Numerical Algorithms, 2.5) and f the ulps of the functions used (the
/// family's: exp in softmax, rsqrt in norm; and `function_ulps`), and p the relative error of
/// products of that precision (in sum_abs factors count as its `least` at least: product_error of
/// ir). 0 for the exact family and for integer results. This is the only tolerance of the project
/// (decision 10).
double bound(const Accuracy& a, double reference, double sum_abs);

/// |got - reference| / bound, and infinity where the kinds of value differ: NaN against a number,
/// an infinity of the wrong sign, an infinity whose reference does not overflow `out` within the
/// bound, any difference (also of a zero's sign) under a bound of 0. NaN equals NaN.
double error_ratio(DType out, double got, double reference, double bound);

}  // namespace tw::check
