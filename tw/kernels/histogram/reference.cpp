#include <cmath>
#include <optional>

#include "tw/kernels/histogram/histogram.h"

namespace tw::kernels {

/// The bin of a number of type t in bins from -1 to 1; nothing where it has none.
static std::optional<int64_t> bin_of(DType t, double x, int64_t bins) {
  if (is_int(t)) {
    const bool there = x >= 0 && x < static_cast<double>(bins);
    return there ? std::optional(static_cast<int64_t>(x)) : std::nullopt;
  }
  if (!(x >= -1 && x <= 1)) return std::nullopt;
  const auto distance = static_cast<float>(x) - -1.0f;
  const float place = distance * (static_cast<float>(bins) / 2.0f);
  return std::min(static_cast<int64_t>(std::floor(place)), bins - 1);
}

check::Reference histogram_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t m = p.extent("m"), n = p.extent("n"), bins = p.extent("bins");
  const std::vector<double> x = to_doubles(in[0]);
  check::ReferenceOutput y;
  y.value.resize(static_cast<size_t>(m * bins));
  y.sum_abs.resize(y.value.size());
  for (int64_t i = 0; i < m * n; ++i)
    if (const auto bin = bin_of(p.dtype, x[i], bins)) y.value[i / n * bins + *bin] += 1;
  return {{.family = check::Family::exact, .out = i32}, {std::move(y)}};
}

}  // namespace tw::kernels
