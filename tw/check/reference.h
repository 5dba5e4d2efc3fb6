#pragma once

#include <vector>

#include "tw/check/bound.h"

namespace tw::check {

/// What an independent reference says of one output: values in double and, for the error bound, the
/// sum of the magnitudes of the terms that were added up to each value. Row-major; both have one
/// entry an element.
struct ReferenceOutput {
  std::vector<double> value;
  std::vector<double> sum_abs;
};

struct Reference {
  Accuracy accuracy;  ///< what the bound of every output follows from
  std::vector<ReferenceOutput> outputs;
};

}  // namespace tw::check
