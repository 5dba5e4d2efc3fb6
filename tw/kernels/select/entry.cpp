#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "tw/base/error.h"
#include "tw/kernels/select/select.h"

namespace tw::kernels {
namespace {

using check::Family;
using check::Reference;
using check::ReferenceOutput;

int64_t count_of(const Problem& p) {
  const int64_t k = p.extent("k"), n = p.extent("n");
  if (k < 1 || k > n)
    throw UserError(fmt::format("k={} of rows of n={} elements", k, n), "k is 1 to n");
  return k;
}

/// The list is read once a block: long lists take long blocks, on a GPU up to what a block keeps in
/// registers.
int64_t cols_of(const Problem& p, const Target& target) {
  const int64_t most = target.gpu() != nullptr ? 8192 : 1 << 20;
  int64_t cols = p.extent("n") <= 64 ? 64 : 1024;
  while (cols < 8 * p.extent("k") && cols < p.extent("n") && cols < most) cols *= 2;
  return cols;
}

std::vector<Argument> top_k_arguments(const Problem& p) {
  const int64_t m = p.extent("m"), k = count_of(p);
  return {{"X", p.dtype, {m, p.extent("n")}, false},
          {"V", p.dtype, {m, k}, true},
          {"I", i64, {m, k}, true}};
}

Program trace_top_k(const Problem& p, const Target& target) {
  return top_k_rows(p.dtype, count_of(p), cols_of(p, target));
}

/// Columns of a row in order: larger first, NaN largest, of equals the lower.
std::vector<int64_t> ranked(const double* row, int64_t n) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    if (std::isnan(row[a]) || std::isnan(row[b])) return std::isnan(row[a]) && !std::isnan(row[b]);
    return row[a] > row[b];
  });
  return order;
}

Reference top_k_reference(const Problem& p, std::span<const TensorView> in) {
  const std::vector<double> x = to_doubles(in[0]);
  const int64_t m = p.extent("m"), n = p.extent("n"), k = count_of(p);
  ReferenceOutput values, indices;
  for (int64_t i = 0; i < m; ++i) {
    const std::vector<int64_t> order = ranked(x.data() + i * n, n);
    for (int64_t r = 0; r < k; ++r) {
      values.value.push_back(x[i * n + order[r]]);
      indices.value.push_back(static_cast<double>(order[r]));
    }
  }
  values.sum_abs.resize(values.value.size());
  indices.sum_abs.resize(indices.value.size());
  return {{.family = Family::exact, .out = p.dtype}, {std::move(values), std::move(indices)}};
}

Problem top_k_shape(int64_t m, int64_t n, int64_t k, DType t) {
  return {{{"m", m}, {"n", n}, {"k", k}}, t, {}};
}

std::vector<Problem> top_k_sweep() {
  std::vector<Problem> all;
  for (const DType t : {f32, bf16})
    for (const auto& [m, n, k] : {std::tuple{1, 1, 1},
                                  {3, 5, 5},
                                  {5, 64, 3},
                                  {2, 65, 65},
                                  {3, 1025, 10},
                                  {2, 4096, 100},
                                  {0, 8, 2}})
      all.push_back(top_k_shape(m, n, k, t));
  return all;
}

std::vector<Problem> top_k_bench() {
  return {top_k_shape(1024, 4096, 8, f32), top_k_shape(256, 32768, 64, f32)};
}

}  // namespace

std::vector<KernelEntry> select_entries() {
  const std::vector<KernelEntry::Axis> axes = {
      {"m", 256, "rows"}, {"n", 32768, "columns"}, {"k", 64, "how many are kept"}};
  return {{"top_k",
           "the k largest of every row of X[m, n], and their columns",
           Family::exact,
           axes,
           {},
           {f32, bf16},
           top_k_arguments,
           trace_top_k,
           top_k_reference,
           top_k_sweep,
           top_k_bench}};
}

}  // namespace tw::kernels
