#include "tw/check/reference.h"

#include <cmath>
#include <limits>

namespace tw::check {

Worst worst_error(const Reference& want, std::span<const TensorView> outputs) {
  Worst worst;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const ReferenceOutput& exact = want.outputs.at(o);
    Accuracy accuracy = want.accuracy;
    accuracy.out = outputs[o].dtype;
    const std::vector<double> got = to_doubles(outputs[o]);
    for (size_t i = 0; i < got.size(); ++i) {
      const double room = bound(accuracy, exact.value[i], exact.sum_abs[i]);
      const double ratio = error_ratio(outputs[o].dtype, got[i], exact.value[i], room);
      if (ratio <= worst.ratio) continue;
      const bool finite = std::isfinite(got[i]) && std::isfinite(exact.value[i]);
      worst = {.error = finite ? std::abs(got[i] - exact.value[i])
                               : std::numeric_limits<double>::infinity(),
               .ratio = ratio,
               .output = static_cast<int64_t>(o),
               .index = static_cast<int64_t>(i)};
    }
  }
  return worst;
}

}  // namespace tw::check
