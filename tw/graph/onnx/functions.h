#pragma once

#include "tw/graph/term.h"

// Functions of floats that the tile language lacks, made of those that it has. Arguments are f32 or
// f64; those marked f64 are made for it, and what is narrower is computed there and rounded once.
namespace tw::graph::onnx {

/// f in f32 of f16 and bf16, as it is otherwise.
Term in_f32(const Term& x, Term (*f)(const Term&));
/// f in f64, rounded to the type of x.
Term in_f64(const Term& x, Term (*f)(const Term&));

Term real(const Term& like, double v);  ///< a constant of the type of `like`
Term is_nan(const Term& x);
Term greater(const Term& a, const Term& b);  ///< false when either is NaN
Term truncated(const Term& x);               ///< toward zero

Term log1p(const Term& x);
Term expm1_below(const Term& x);  ///< e^x - 1 for x <= 0
Term sigmoid(const Term& x);
Term softplus(const Term& x);
Term gelu(const Term& x);
Term gelu_tanh(const Term& x);
Term sign(const Term& x);  ///< of any number

Term tan(const Term& x);    ///< f64, 5 ulp
Term atan(const Term& x);   ///< f64
Term asin(const Term& x);   ///< f64
Term acos(const Term& x);   ///< f64
Term sinh(const Term& x);   ///< f64
Term cosh(const Term& x);   ///< f64
Term asinh(const Term& x);  ///< f64
Term acosh(const Term& x);  ///< f64
Term atanh(const Term& x);  ///< f64

/// x^y as C's pow, f64: exact special values; the relative error grows with |y log x|, to about
/// 1e-13 at the ends of the range.
Term power(const Term& x, const Term& y);
/// Of integers of one type: wraps; of negative exponents the integer part.
Term integer_power(const Term& x, const Term& y);
/// What is left of a after whole multiples of b, with the sign of a, f64: exact while a / b is less
/// than 2^29 and both are f32.
Term float_remainder(const Term& a, const Term& b);

}  // namespace tw::graph::onnx
