#include <cmath>

#include "tw/kernels/scan/scan.h"

namespace tw::kernels {

check::Reference cumsum_reference(const Problem& p, std::span<const TensorView> in) {
  const std::vector<double> x = to_doubles(in[0]);
  const int64_t m = in[0].dims[0], n = in[0].dims[1];
  check::ReferenceOutput y{std::vector<double>(x.size()), std::vector<double>(x.size())};
  const bool reverse = p.option("direction") == "reverse";
  const bool exclusive = p.option("exclusive") == "yes";
  for (int64_t i = 0; i < m; ++i) {
    double sum = 0, magnitude = 0;
    for (int64_t step = 0; step < n; ++step) {
      const int64_t at = i * n + (reverse ? n - 1 - step : step);
      const double before = sum, magnitude_before = magnitude;
      sum += x[at];
      magnitude += std::abs(x[at]);
      y.value[at] = exclusive ? before : sum;
      y.sum_abs[at] = exclusive ? magnitude_before : magnitude;
    }
  }
  return {{.family = check::Family::reduction, .out = p.dtype, .terms = n}, {std::move(y)}};
}

}  // namespace tw::kernels
