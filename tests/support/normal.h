#pragma once

#include "tw/tensor/tensor.h"

namespace tw::test {

/// Fills with standard normal values of the counter generator, key (seed, 0), counter = element
/// index, times a factor, rounded to the tensor's type.
void fill_normal(const TensorView& t, uint64_t seed, double factor = 1);

}  // namespace tw::test
