#include "tw/kernels/histogram/histogram.h"

namespace tw::kernels {
namespace {

std::vector<Argument> histogram_arguments(const Problem& p) {
  const int64_t m = p.extent("m"), n = p.extent("n"), bins = p.extent("bins");
  return {{"X", p.dtype, {m, n}, false}, {"Y", i32, {m, bins}, true}};
}

Program trace_histogram(const Problem& p, const Target& target) {
  const HistogramForm form{p.dtype, std::max<int64_t>(p.extent("bins"), 1), -1, 1};
  const int64_t most = target.gpu() != nullptr ? 4096 : 1024;
  return histogram(form, {.cols = p.extent("n") <= 64 ? 64 : most});
}

Problem histogram_problem(int64_t m, int64_t n, int64_t bins, DType t) {
  return {{{"m", m}, {"n", n}, {"bins", bins}}, t, {}};
}

const std::vector<DType> kCounted = {f32, f16, bf16, u8, i32, i64};

/// Rows of one block and of several; one bin and many; nothing to count.
std::vector<Problem> histogram_sweep() {
  std::vector<Problem> all;
  for (const DType t : kCounted) all.push_back(histogram_problem(3, 100, 37, t));
  for (const auto& [m, n, bins] : {std::array<int64_t, 3>{1, 1, 1}, {0, 5, 3}, {2, 0, 4}})
    all.push_back(histogram_problem(m, n, bins, f32));
  all.push_back(histogram_problem(2, 2500, 300, f32));
  all.push_back(histogram_problem(2, 1100, 100, u8));
  return all;
}

std::vector<Problem> histogram_bench() {
  return {histogram_problem(64, 1 << 18, 256, u8), histogram_problem(64, 1 << 16, 100, f32)};
}

}  // namespace

std::vector<KernelEntry> histogram_entries() {
  return {{"histogram",
           "how many elements of each row of X[m, n] fall in each bin; floats in bins from -1 to 1",
           check::Family::exact,
           {{"m", 64, "rows"}, {"n", 1 << 18, "columns"}, {"bins", 256, "bins"}},
           {},
           kCounted,
           histogram_arguments,
           trace_histogram,
           histogram_reference,
           histogram_sweep,
           histogram_bench}};
}

}  // namespace tw::kernels
