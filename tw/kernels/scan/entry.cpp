#include "tw/kernels/block_tile.h"
#include "tw/kernels/scan/scan.h"

namespace tw::kernels {
namespace {

std::vector<Argument> cumsum_arguments(const Problem& p) {
  const std::vector<int64_t> mn = {p.extent("m"), p.extent("n")};
  return {{"X", p.dtype, mn, false}, {"Y", p.dtype, mn, true}};
}

Program trace_cumsum(const Problem& p, const Target& target) {
  const CumsumForm form{p.dtype, p.option("direction") == "reverse",
                        p.option("exclusive") == "yes"};
  if (const GpuMachine* gpu = target.gpu()) {
    const CumsumChunks chunks;
    // An instance a row would leave multiprocessors idle.
    if (p.extent("m") < 2 * gpu->multiprocessors && p.extent("n") > 3 * chunks.cols)
      return cumsum_shared_rows(form, chunks);
    const BlockTile t = rows_tile(p.extent("m"), p.extent("n"), *gpu, 8192);
    return cumsum(form, {t.rows, t.cols});
  }
  CumsumTiling tiling;
  for (const int64_t cols : {256, 64})
    if (p.extent("n") <= cols) tiling.cols = cols;
  return cumsum(form, tiling);
}

Problem cumsum_shape(int64_t m, int64_t n, DType t, const char* direction, const char* exclusive) {
  return {{{"m", m}, {"n", n}}, t, {{"direction", direction}, {"exclusive", exclusive}}};
}

std::vector<Problem> cumsum_sweep() {
  std::vector<Problem> all;
  for (const char* direction : {"forward", "reverse"})
    for (const char* exclusive : {"no", "yes"}) {
      for (const auto& [m, n] : {std::pair{3, 5}, {2, 65}, {2, 2050}})
        all.push_back(cumsum_shape(m, n, f32, direction, exclusive));
      all.push_back(cumsum_shape(4, 257, bf16, direction, exclusive));
      all.push_back(cumsum_shape(1, 3 * CumsumChunks().cols + 77, f32, direction, exclusive));
    }
  for (const auto& [m, n] : {std::pair{1, 1}, {2, 64}, {0, 8}, {3, 0}})
    all.push_back(cumsum_shape(m, n, f32, "forward", "no"));
  return all;
}

std::vector<Problem> cumsum_bench() {
  return {cumsum_shape(128, 1024, f32, "forward", "no"),
          cumsum_shape(8192, 4096, f32, "forward", "no"),
          cumsum_shape(1, 1 << 24, f32, "forward", "no")};
}

}  // namespace

std::vector<KernelEntry> scan_entries() {
  return {{"cumsum",
           "running sums of every row of X[m, n]",
           check::Family::reduction,
           {{"m", 8192, "rows"}, {"n", 4096, "columns"}},
           {{"direction", {"forward", "reverse"}, "from the first element on, or from the last"},
            {"exclusive", {"no", "yes"}, "whether an element's own value is left out of its sum"}},
           {f32, bf16},
           cumsum_arguments,
           trace_cumsum,
           cumsum_reference,
           cumsum_sweep,
           cumsum_bench}};
}

}  // namespace tw::kernels
