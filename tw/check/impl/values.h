#pragma once

#include <random>

#include "tw/check/verify.h"

namespace tw::check {

/// Values of one input element after another.
class ValueStream {
 public:
  ValueStream(Values values, DType dtype, uint64_t seed);
  double next();

 private:
  double uniform() { return 2 * std::generate_canonical<double, 32>(random_) - 1; }
  double integer();
  double floating();
  double special();

  Values values_;
  DType dtype_;
  std::mt19937_64 random_;
  double scale_ = 1;
};

/// Of all elements of an input, in row-major order: as far as its domain allows, those `wanted`.
std::vector<double> input_values(const Argument& a, Values wanted, uint64_t seed);

/// Strides in elements of a tensor laid out so; `output`s are never expanded.
std::vector<int64_t> strides_of(Layout l, const std::vector<int64_t>& dims, DType t, bool output);

}  // namespace tw::check
