#include <cmath>

#include "tw/kernels/index/index.h"

namespace tw::kernels {

/// Whether an id is a row, of `extent`.
static bool is_row(double id, int64_t extent) {
  return id >= 0 && id < static_cast<double>(extent);
}

check::Reference embedding_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t v = p.extent("v"), d = p.extent("d");
  const std::vector<double> table = to_doubles(in[0]), ids = to_doubles(in[1]);
  check::ReferenceOutput y;
  for (const double id : ids)
    for (int64_t j = 0; j < d; ++j)
      y.value.push_back(is_row(id, v) ? table[static_cast<int64_t>(id) * d + j] : 0);
  y.sum_abs.resize(y.value.size());
  return {{.family = check::Family::exact, .out = p.dtype}, {std::move(y)}};
}

check::Reference index_add_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t v = p.extent("v"), d = p.extent("d"), n = p.extent("n");
  const std::vector<double> ids = to_doubles(in[1]), x = to_doubles(in[2]);
  check::ReferenceOutput y{to_doubles(in[0]), {}};
  for (const double b : y.value) y.sum_abs.push_back(std::abs(b));
  std::vector<int64_t> terms(static_cast<size_t>(v), 1);
  int64_t most = 1;
  for (int64_t i = 0; i < n; ++i) {
    if (!is_row(ids[i], v)) continue;
    const auto row = static_cast<int64_t>(ids[i]);
    most = std::max(most, ++terms[row]);
    for (int64_t j = 0; j < d; ++j) {
      y.value[row * d + j] += x[i * d + j];
      y.sum_abs[row * d + j] += std::abs(x[i * d + j]);
    }
  }
  return {{.family = check::Family::reduction, .out = f32, .terms = most}, {std::move(y)}};
}

check::Reference copy_reference(const Problem& p, std::span<const TensorView> in) {
  check::ReferenceOutput y{to_doubles(in[0]), {}};
  y.sum_abs.resize(y.value.size());
  return {{.family = check::Family::exact, .out = p.dtype}, {std::move(y)}};
}

check::Reference transpose_reference(const Problem& p, std::span<const TensorView> in) {
  const int64_t m = p.extent("m"), n = p.extent("n");
  const std::vector<double> x = to_doubles(in[0]);
  check::ReferenceOutput y;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) y.value.push_back(x[i * n + j]);
  y.sum_abs.resize(y.value.size());
  return {{.family = check::Family::exact, .out = p.dtype}, {std::move(y)}};
}

}  // namespace tw::kernels
