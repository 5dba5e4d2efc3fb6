#pragma once

#include <span>

#include "tw/passes/pipeline.h"

namespace tw {

/// Rewrites ops by rules that keep every bit (any NaN for any NaN), simplifies index expressions by
/// what is known of their symbols, and makes the program canonical again.
///   %1 = full 1 ...
///   %2 = mul %0, %1              =>    %2 = exp %0
///   %3 = exp %2
void simplify(Program& p, const PassContext& context);

/// A rule of simplify: `from` becomes `to`, for operands of the classes. Lower-case letters are
/// values, other words constants; a constant or value stands for a result of its own type.
struct Rewrite {
  const char* from;     ///< "(mul x 1)"
  const char* to;       ///< "x", "0" or "(neg x)"
  const char* classes;  ///< of the result's dtype: any of f(loat) i(nteger) b(1)
};
std::span<const Rewrite> rewrites();

}  // namespace tw
