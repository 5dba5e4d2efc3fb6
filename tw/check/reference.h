#pragma once

#include <span>
#include <vector>

#include "tw/check/bound.h"
#include "tw/tensor/tensor.h"

namespace tw::check {

/// What an independent reference says of one output: values in double and, for the error bound, the
/// sum of the magnitudes of the terms that were added up to each value. Row-major; both have one
/// entry an element.
struct ReferenceOutput {
  std::vector<double> value;
  std::vector<double> sum_abs;
};

struct Reference {
  Accuracy accuracy;  ///< what the bounds of outputs follow from, each with its own type as `out`
  std::vector<ReferenceOutput> outputs;
};

/// The element that is furthest from the reference, by error over bound.
struct Worst {
  double error = 0;  ///< |got - reference|; infinity where the kinds of value differ
  double ratio = 0;  ///< error / check::bound
  int64_t output = 0, index = 0;
};
Worst worst_error(const Reference& want, std::span<const TensorView> outputs);

}  // namespace tw::check
