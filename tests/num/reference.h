#pragma once

#include <vector>

#include "tw/num/codec.h"

namespace tw::test {

/// The positive finite values of a float type of at most 16 bits, ascending, each at the index of
/// its code: the number line that rounding picks from. Computed from the definition of the format
/// (fields, bias), apart from the codec.
std::vector<double> number_line(DType t);

/// The code that `value` must round to, by looking for its neighbours on the line.
uint64_t rounded_by_search(DType t, const std::vector<double>& line, double value, Rounding r,
                           bool saturate);

}  // namespace tw::test
