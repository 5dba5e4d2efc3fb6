#pragma once

#include <cstdint>
#include <vector>

namespace tw::check {

/// What an independent reference says of one output: values in double and, for the error bound, the
/// sum of the magnitudes of the terms that were added up to each value. Row-major; both have one
/// entry an element.
struct ReferenceOutput {
  std::vector<double> value;
  std::vector<double> sum_abs;
};

struct Reference {
  int64_t terms = 1;         ///< K of the bound: how many terms are added up to one element
  double function_ulps = 0;  ///< of the bound: stated ulps of functions beyond the family's own
  std::vector<ReferenceOutput> outputs;
};

}  // namespace tw::check
