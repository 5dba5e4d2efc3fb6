#include "tw/kernels/rows/rows.h"

#include "tw/kernels/block_tile.h"
#include "tw/kernels/rows/reference.h"

namespace tw::kernels {

static constexpr float kEps = 1e-5f;

/// Longest rows that argmax keeps in registers; pairs of values and indices take three an element.
static constexpr int64_t kLongestArgmax = 8192, kLongestPairs = 4096;

/// Longest rows that a block keeps, beside parameters and squares; a cluster keeps more.
static constexpr int64_t kLongestNorm = 16384;

static RowTiling block_rows(const Problem& p, const GpuMachine& gpu, int64_t longest,
                            int64_t elements = kRowElements) {
  const BlockTile t = rows_tile(p.extent("m"), p.extent("n"), gpu, longest, elements);
  return {t.rows, t.cols, true, p.extent("n") > t.cols};
}

/// The chunk is the smallest of 64, 256, 1024 that holds a row, else 1024.
static RowTiling row_tiling(const Problem& p, const Target& target,
                            int64_t longest = kLongestNorm) {
  if (const GpuMachine* gpu = target.gpu()) return block_rows(p, *gpu, longest);
  for (int64_t cols : {64, 256})
    if (p.extent("n") <= cols) return {.rows = 1, .cols = cols};
  return {.rows = 1, .cols = 1024};
}

/// Rows of so many inputs that are folded once.
static RowTiling rms_tiling(const Problem& p, const Target& target, int inputs) {
  const GpuMachine* gpu = target.gpu();
  if (gpu == nullptr) return row_tiling(p, target);
  return block_rows(p, *gpu, longest_kept(*gpu, kLongestNorm, inputs * bytes(p.dtype)),
                    kSharingElements);
}

/// Rows that are folded twice: a cluster does that no faster than it reads longer ones again, nor
/// does a block where their elements are narrow.
static RowTiling layernorm_tiling(const Problem& p, const Target& target) {
  const GpuMachine* gpu = target.gpu();
  return gpu == nullptr ? row_tiling(p, target)
                        : block_rows(p, *gpu, kLongestNorm * bytes(p.dtype) / 4, kSharingElements);
}

/// Rows of up to 16384 in one chunk: their weights then stay in the core's caches, and the output
/// is written once.
static RowTiling softmax_tiling(const Problem& p, const Target& target) {
  if (const GpuMachine* gpu = target.gpu())
    return block_rows(p, *gpu, longest_kept(*gpu, kLongestRow, bytes(p.dtype)));
  const int64_t columns = p.extent("n");
  for (int64_t cols = 32; cols <= 16384; cols *= 2)
    if (columns <= cols) return {.rows = 1, .cols = cols};
  return {.rows = 1, .cols = 4096};
}

/// A block of columns is walked eight rows at a time: eight streams of memory, and lanes run along
/// the columns.
static RowTiling column_tiling(const Problem& p, const Target& target) {
  const int64_t m = p.extent("m"), n = p.extent("n");
  if (const GpuMachine* gpu = target.gpu()) {
    const bool pairs = p.option("op") == "argmax";
    const BlockTile t = columns_tile(m, n, bytes(p.dtype), pairs ? kLongestPairs : 8192, *gpu);
    // Two loads of 16 bytes are under way for each thread, whatever elements they are.
    return {.rows = t.rows, .cols = t.cols, .few_reads = true, .chunks = 4 / bytes(p.dtype)};
  }
  return {.rows = 8, .cols = n <= 64 ? 64 : 256};
}

static RowReduction reduction_named(const std::string& op) {
  if (op == "max") return RowReduction::max;
  if (op == "mean") return RowReduction::mean;
  if (op == "argmax") return RowReduction::argmax;
  return RowReduction::sum;
}

// ---- problems

static Problem shape(int64_t m, int64_t n, DType t) { return {{{"m", m}, {"n", n}}, t, {}}; }

static std::vector<Problem> row_sweep() {
  std::vector<Problem> all;
  for (DType t : {f32, bf16})
    for (auto [m, n] : {std::pair{1, 1},
                        {3, 5},
                        {7, 64},
                        {2, 65},
                        {5, 255},
                        {4, 257},
                        {3, 1000},
                        {2, 1024},
                        {3, 1025},
                        {2, 4097},
                        {0, 8},
                        {33, 16}})
      all.push_back(shape(m, n, t));
  return all;
}

/// Of bf16, every second has weights of its type.
static std::vector<Problem> norm_sweep() {
  std::vector<Problem> all = row_sweep();
  int nth = 0;
  for (Problem& p : all) p.options["weights"] = p.dtype == bf16 && nth++ % 2 ? "same" : "f32";
  return all;
}

static std::vector<Problem> row_bench() {
  return {shape(128, 1024, f32), shape(8192, 4096, f32), shape(8192, 4096, bf16)};
}

static std::vector<Problem> with_ops(std::vector<Problem> base, int64_t empty_axis_rows) {
  std::vector<Problem> all;
  // Of bf16 every third: what differs from f32 is how elements are read.
  int nth = 0;
  std::erase_if(base, [&](const Problem& p) { return p.dtype == bf16 && nth++ % 3 != 1; });
  base.push_back(shape(empty_axis_rows ? 0 : 4, empty_axis_rows ? 4 : 0, f32));
  for (const char* op : {"sum", "max", "mean", "argmax"})
    for (Problem p : base) {
      p.options["op"] = op;
      all.push_back(p);
    }
  return all;
}

static std::vector<Problem> row_reduce_sweep() { return with_ops(row_sweep(), 0); }
static std::vector<Problem> column_reduce_sweep() { return with_ops(row_sweep(), 1); }
static std::vector<Problem> reduce_bench() {
  std::vector<Problem> all;
  for (const char* op : {"sum", "max", "argmax"})
    all.push_back({{{"m", 8192}, {"n", 4096}}, f32, {{"op", op}}});
  return all;
}

// ---- arguments

static DType weights_of(const Problem& p) { return p.option("weights") == "same" ? p.dtype : f32; }

static std::vector<Argument> softmax_arguments(const Problem& p) {
  std::vector<int64_t> mn = {p.extent("m"), p.extent("n")};
  return {{"X", p.dtype, mn, false}, {"Y", p.dtype, mn, true}};
}

static std::vector<Argument> rmsnorm_arguments(const Problem& p) {
  std::vector<int64_t> mn = {p.extent("m"), p.extent("n")};
  return {{"X", p.dtype, mn, false},
          {"gamma", weights_of(p), {mn[1]}, false},
          {"Y", p.dtype, mn, true}};
}

static std::vector<Argument> add_rmsnorm_arguments(const Problem& p) {
  std::vector<int64_t> mn = {p.extent("m"), p.extent("n")};
  return {{"X", p.dtype, mn, false},
          {"R", p.dtype, mn, false},
          {"gamma", weights_of(p), {mn[1]}, false},
          {"S", p.dtype, mn, true},
          {"Y", p.dtype, mn, true}};
}

static std::vector<Argument> layernorm_arguments(const Problem& p) {
  std::vector<int64_t> mn = {p.extent("m"), p.extent("n")};
  return {{"X", p.dtype, mn, false},
          {"gamma", weights_of(p), {mn[1]}, false},
          {"beta", weights_of(p), {mn[1]}, false},
          {"Y", p.dtype, mn, true}};
}

static std::vector<Argument> reduce_arguments(const Problem& p, const char* kept_axis) {
  DType y = p.option("op") == "argmax" ? i64 : p.dtype;
  return {{"X", p.dtype, {p.extent("m"), p.extent("n")}, false},
          {"Y", y, {p.extent(kept_axis)}, true}};
}
static std::vector<Argument> sum_arguments(const Problem& p) {
  return {{"X", p.dtype, {p.extent("n")}, false}, {"Y", f32, {parts_of(p)}, true}};
}
static std::vector<Argument> row_arguments(const Problem& p) { return reduce_arguments(p, "m"); }
static std::vector<Argument> column_arguments(const Problem& p) { return reduce_arguments(p, "n"); }

// ---- programs

static Program trace_softmax(const Problem& p, const Target& target) {
  return softmax(p.dtype, softmax_tiling(p, target));
}
static Program trace_layernorm(const Problem& p, const Target& target) {
  return layernorm(p.dtype, layernorm_tiling(p, target), kEps, weights_of(p));
}
static Program trace_rmsnorm(const Problem& p, const Target& target) {
  return rmsnorm(p.dtype, rms_tiling(p, target, 1), kEps, weights_of(p));
}
static Program trace_add_rmsnorm(const Problem& p, const Target& target) {
  return add_rmsnorm(p.dtype, rms_tiling(p, target, 2), kEps, weights_of(p));
}
static Program trace_rows(const Problem& p, const Target& target) {
  const RowReduction r = reduction_named(p.option("op"));
  const int64_t longest = r == RowReduction::argmax ? kLongestArgmax : 8192;
  return row_reduce(r, p.dtype, row_tiling(p, target, longest));
}
static Program trace_columns(const Problem& p, const Target& target) {
  return column_reduce(reduction_named(p.option("op")), p.dtype, column_tiling(p, target));
}

static Program trace_sum(const Problem& p, const Target& target) {
  return sum_pieces(p.dtype, target.gpu() != nullptr ? 8192 : 1024);
}

static Problem pieces(int64_t n, const char* parts, DType t) {
  return {{{"n", n}}, t, {{"parts", parts}}};
}
static std::vector<Problem> sum_sweep() {
  std::vector<Problem> all;
  for (const DType t : {f32, bf16})
    for (const auto& [n, parts] :
         {std::pair{1, "1"}, {5, "16"}, {8193, "1"}, {0, "16"}, {10'000, "16"}, {70'001, "16"}})
      all.push_back(pieces(n, parts, t));
  return all;
}
static std::vector<Problem> sum_bench() {
  return {pieces(1 << 25, "2048", f32), pieces(1 << 25, "2048", bf16), pieces(2048, "1", f32)};
}

static check::Reference layernorm_of(const Problem& p, std::span<const TensorView> in) {
  return layernorm_reference(p, in, kEps);
}
static check::Reference add_rmsnorm_of(const Problem& p, std::span<const TensorView> in) {
  return add_rmsnorm_reference(p, in, kEps);
}
static check::Reference rmsnorm_of(const Problem& p, std::span<const TensorView> in) {
  return rmsnorm_reference(p, in, kEps);
}

static std::vector<KernelEntry> norm_entries(const std::vector<KernelEntry::Axis>& axes,
                                             const std::vector<DType>& types) {
  const KernelEntry::Option weights = {
      "weights", {"f32", "same"}, "type of gamma and beta: f32, or that of X"};
  using check::Family;
  return {
      {"softmax",
       "softmax of every row of X[m, n]",
       Family::softmax,
       axes,
       {},
       types,
       softmax_arguments,
       trace_softmax,
       softmax_reference,
       row_sweep,
       row_bench},
      {"layernorm",
       "layer normalisation of every row of X[m, n], gamma and beta",
       Family::norm,
       axes,
       {weights},
       types,
       layernorm_arguments,
       trace_layernorm,
       layernorm_of,
       norm_sweep,
       row_bench},
      {"rmsnorm",
       "root-mean-square normalisation of every row of X[m, n], gamma",
       Family::norm,
       axes,
       {weights},
       types,
       rmsnorm_arguments,
       trace_rmsnorm,
       rmsnorm_of,
       norm_sweep,
       row_bench},
      {"add_rmsnorm",
       "S = X + R of X[m, n], and root-mean-square normalisation of its rows, gamma",
       Family::norm,
       axes,
       {weights},
       types,
       add_rmsnorm_arguments,
       trace_add_rmsnorm,
       add_rmsnorm_of,
       norm_sweep,
       row_bench},
  };
}

static std::vector<KernelEntry> reduce_entries(const std::vector<KernelEntry::Axis>& axes,
                                               const std::vector<DType>& types) {
  const KernelEntry::Option op = {"op", {"sum", "max", "mean", "argmax"}, "what to compute"};
  using check::Family;
  return {
      {"row_reduce",
       "sum, max, mean or argmax along each row of X[m, n]",
       Family::reduction,
       axes,
       {op},
       types,
       row_arguments,
       trace_rows,
       row_reduce_reference,
       row_reduce_sweep,
       reduce_bench},
      {"sum",
       "sums of equal parts of X[n]; a second call on them gives the sum of all",
       Family::reduction,
       {{"n", 1 << 25, "elements"}},
       {{"parts", {"4096", "2048", "1024", "256", "16", "1"}, "how many sums"}},
       types,
       sum_arguments,
       trace_sum,
       sum_reference,
       sum_sweep,
       sum_bench},
      {"column_reduce",
       "sum, max, mean or argmax along each column of X[m, n]",
       Family::reduction,
       axes,
       {op},
       types,
       column_arguments,
       trace_columns,
       column_reduce_reference,
       column_reduce_sweep,
       reduce_bench},
  };
}

std::vector<KernelEntry> row_entries() {
  const std::vector<KernelEntry::Axis> axes = {{"m", 8192, "rows"}, {"n", 4096, "columns"}};
  const std::vector<DType> types = {f32, bf16};
  std::vector<KernelEntry> all = norm_entries(axes, types);
  for (KernelEntry& k : reduce_entries(axes, types)) all.push_back(std::move(k));
  return all;
}

}  // namespace tw::kernels
