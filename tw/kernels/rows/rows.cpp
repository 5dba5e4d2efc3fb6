#include "tw/kernels/rows/rows.h"

#include "tw/kernels/rows/reference.h"

namespace tw::kernels {

static constexpr float kEps = 1e-5f;

RowTiling row_tiling(int64_t columns) {
  for (int64_t cols : {64, 256})
    if (columns <= cols) return {.rows = 1, .cols = cols};
  return {.rows = 1, .cols = 1024};
}

/// Rows of up to 16384 in one chunk: their weights then stay in the core's caches, and the output
/// is written once.
static RowTiling softmax_tiling(int64_t columns) {
  for (int64_t cols = 32; cols <= 16384; cols *= 2)
    if (columns <= cols) return {.rows = 1, .cols = cols};
  return {.rows = 1, .cols = 4096};
}

/// A block of columns is walked eight rows at a time: eight streams of memory, and lanes run along
/// the columns.
static RowTiling column_tiling(int64_t columns) {
  return {.rows = 8, .cols = columns <= 64 ? 64 : 256};
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

static std::vector<Argument> softmax_arguments(const Problem& p) {
  std::vector<int64_t> mn = {p.extent("m"), p.extent("n")};
  return {{"X", p.dtype, mn, false}, {"Y", p.dtype, mn, true}};
}

static std::vector<Argument> rmsnorm_arguments(const Problem& p) {
  std::vector<int64_t> mn = {p.extent("m"), p.extent("n")};
  return {{"X", p.dtype, mn, false}, {"gamma", f32, {mn[1]}, false}, {"Y", p.dtype, mn, true}};
}

static std::vector<Argument> layernorm_arguments(const Problem& p) {
  std::vector<int64_t> mn = {p.extent("m"), p.extent("n")};
  return {{"X", p.dtype, mn, false},
          {"gamma", f32, {mn[1]}, false},
          {"beta", f32, {mn[1]}, false},
          {"Y", p.dtype, mn, true}};
}

static std::vector<Argument> reduce_arguments(const Problem& p, const char* kept_axis) {
  DType y = p.option("op") == "argmax" ? i64 : p.dtype;
  return {{"X", p.dtype, {p.extent("m"), p.extent("n")}, false},
          {"Y", y, {p.extent(kept_axis)}, true}};
}
static std::vector<Argument> row_arguments(const Problem& p) { return reduce_arguments(p, "m"); }
static std::vector<Argument> column_arguments(const Problem& p) { return reduce_arguments(p, "n"); }

// ---- programs

static Program trace_softmax(const Problem& p, const Target&) {
  return softmax(p.dtype, softmax_tiling(p.extent("n")));
}
static Program trace_layernorm(const Problem& p, const Target&) {
  return layernorm(p.dtype, row_tiling(p.extent("n")), kEps);
}
static Program trace_rmsnorm(const Problem& p, const Target&) {
  return rmsnorm(p.dtype, row_tiling(p.extent("n")), kEps);
}
static Program trace_rows(const Problem& p, const Target&) {
  return row_reduce(reduction_named(p.option("op")), p.dtype, row_tiling(p.extent("n")));
}
static Program trace_columns(const Problem& p, const Target&) {
  return column_reduce(reduction_named(p.option("op")), p.dtype, column_tiling(p.extent("n")));
}

static check::Reference layernorm_of(const Problem& p, std::span<const TensorView> in) {
  return layernorm_reference(p, in, kEps);
}
static check::Reference rmsnorm_of(const Problem& p, std::span<const TensorView> in) {
  return rmsnorm_reference(p, in, kEps);
}

std::vector<KernelEntry> row_entries() {
  const std::vector<KernelEntry::Axis> axes = {{"m", 8192, "rows"}, {"n", 4096, "columns"}};
  const KernelEntry::Option op = {"op", {"sum", "max", "mean", "argmax"}, "what to compute"};
  const std::vector<DType> types = {f32, bf16};
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
       {},
       types,
       layernorm_arguments,
       trace_layernorm,
       layernorm_of,
       row_sweep,
       row_bench},
      {"rmsnorm",
       "root-mean-square normalisation of every row of X[m, n], gamma",
       Family::norm,
       axes,
       {},
       types,
       rmsnorm_arguments,
       trace_rmsnorm,
       rmsnorm_of,
       row_sweep,
       row_bench},
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

}  // namespace tw::kernels
