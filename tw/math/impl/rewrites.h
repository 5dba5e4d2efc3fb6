#pragma once

#include <optional>

#include "tw/math/facts.h"

namespace tw {

// Rules that look at a whole sum, or at a whole chain of min or max. Each gives an expression equal
// to e, not always a smaller one.

/// y + x*2 - x  =>  x + y, in canonical order
std::optional<Expr> canonical_sum(const Expr& e, const Facts& facts);
/// floordiv(x, y)*y  =>  x - mod(x, y), or x where y divides it
std::optional<Expr> multiply_quotient_out(const Expr& e, const Facts& facts);

/// floordiv(x*64 + y, 64)  =>  x + floordiv(y, 64), and the last is 0 where 0 <= y < 64
std::optional<Expr> split_quotient(const Expr& e, const Facts& facts);
/// mod(x*64 + y, 64)  =>  mod(y, 64), and that is y where 0 <= y < 64
std::optional<Expr> split_remainder(const Expr& e, const Facts& facts);
/// floordiv(x*16 + y, 64)  =>  floordiv(x, 4)  where 0 <= y < 16
std::optional<Expr> reduce_quotient(const Expr& e, const Facts& facts);
/// mod(x*16 + y, 64)  =>  mod(x, 4)*16 + y  where 0 <= y < 16
std::optional<Expr> reduce_remainder(const Expr& e, const Facts& facts);

/// min(y, min(x, x + 1))  =>  min(x, y): in canonical order, without operands that others decide
std::optional<Expr> canonical_choice(const Expr& e, const Facts& facts);
/// min(x*4 + z, y*4 + z)  =>  min(x, y)*4 + z
std::optional<Expr> factor_choice(const Expr& e, const Facts& facts);

}  // namespace tw
