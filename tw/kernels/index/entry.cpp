#include "tw/kernels/block_tile.h"
#include "tw/kernels/index/index.h"

namespace tw::kernels {
namespace {

/// The smallest power of two from 16 that holds a row, at most 512.
IndexTiling index_tiling(int64_t columns) {
  IndexTiling t{.rows = 8, .cols = 16};
  while (t.cols < columns && t.cols < 512) t.cols *= 2;
  return t;
}

DType id_type(const Problem& p) { return p.option("ids") == "i64" ? i64 : i32; }

Problem rows_problem(int64_t v, int64_t d, int64_t n, DType t, const char* ids) {
  return {{{"v", v}, {"d", d}, {"n", n}}, t, {{"ids", ids}}};
}

/// Rows of one and of many tiles; more and fewer ids than rows; nothing to look up, or nowhere.
std::vector<Problem> rows_sweep(std::initializer_list<DType> types) {
  std::vector<Problem> all;
  for (const DType t : types) {
    all.push_back(rows_problem(37, 13, 20, t, "i32"));
    all.push_back(rows_problem(50, 70, 9, t, "i64"));
  }
  for (const auto& [v, d, n] : {std::array<int64_t, 3>{1, 1, 1},
                                {3, 5, 0},
                                {0, 5, 3},
                                {4, 0, 3},
                                {3, 700, 70},
                                {100, 33, 300}})
    all.push_back(rows_problem(v, d, n, f32, "i32"));
  all.push_back(rows_problem(90, 16, 65, f32, "i64"));
  return all;
}
std::vector<Problem> embedding_sweep() { return rows_sweep({f32, bf16, f16}); }
std::vector<Problem> index_add_sweep() { return rows_sweep({f32}); }

std::vector<Problem> embedding_bench() {
  return {rows_problem(50257, 768, 8192, f32, "i32"), rows_problem(50257, 768, 8192, bf16, "i32")};
}
std::vector<Problem> index_add_bench() { return {rows_problem(4096, 1024, 16384, f32, "i32")}; }

std::vector<Argument> embedding_arguments(const Problem& p) {
  const int64_t v = p.extent("v"), d = p.extent("d"), n = p.extent("n");
  return {{"table", p.dtype, {v, d}, false},
          {"ids", id_type(p), {n}, false},
          {"Y", p.dtype, {n, d}, true}};
}

std::vector<Argument> index_add_arguments(const Problem& p) {
  const int64_t v = p.extent("v"), d = p.extent("d"), n = p.extent("n");
  return {{"base", f32, {v, d}, false},
          {"ids", id_type(p), {n}, false},
          {"X", f32, {n, d}, false},
          {"Y", f32, {v, d}, true}};
}

/// Of `rows` rows of d elements.
IndexTiling index_tiling(const Problem& p, const char* rows, const Target& target) {
  const GpuMachine* gpu = target.gpu();
  if (gpu == nullptr) return index_tiling(p.extent("d"));
  const BlockTile t = elements_tile(p.extent(rows), p.extent("d"), *gpu);
  return {t.rows, t.cols};
}

Program trace_embedding(const Problem& p, const Target& target) {
  return embedding(p.dtype, id_type(p), index_tiling(p, "n", target));
}

/// Sums of a block, of which a thread keeps half its registers: the more rows, the fewer blocks
/// look at the ids.
IndexTiling sums_tiling(const Problem& p, const GpuMachine& gpu) {
  constexpr int64_t kSums = 16384, kMostRows = 8;
  const int64_t v = p.extent("v"), d = p.extent("d");
  IndexTiling t{1, extent_for(d, 32, 4096)};
  const auto blocks = [&](int64_t rows, int64_t cols) {
    return (v + rows - 1) / rows * ((d + cols - 1) / cols);
  };
  const int64_t enough = 4 * gpu.multiprocessors;
  while (t.cols > 1024 && blocks(1, t.cols) < enough) t.cols /= 2;
  while (t.rows < kMostRows && 2 * t.rows * t.cols <= kSums && blocks(2 * t.rows, t.cols) >= enough)
    t.rows *= 2;
  return t;
}

Program trace_index_add_sorted(const Problem& p, const Target& target) {
  if (const GpuMachine* gpu = target.gpu())
    return index_add_sorted_rows(id_type(p), sums_tiling(p, *gpu));
  return index_add_sorted(id_type(p), index_tiling(p, "v", target));
}

/// Columns in as many blocks as threads, where that leaves each a few lines of the caches.
Program trace_index_add(const Problem& p, const Target& target) {
  if (const GpuMachine* gpu = target.gpu()) return index_add_rows(id_type(p), sums_tiling(p, *gpu));
  IndexTiling t = index_tiling(p.extent("d"));
  while (t.cols > 64 && t.cols * target.threads() > p.extent("d")) t.cols /= 2;
  return index_add(id_type(p), t);
}

std::vector<Argument> index_add_sorted_arguments(const Problem& p) {
  std::vector<Argument> all = index_add_arguments(p);
  all[1].domain = check::Domain::sorted;
  return all;
}

// ---- transpose and copy

Problem matrix_problem(int64_t m, int64_t n, DType t) { return {{{"m", m}, {"n", n}}, t, {}}; }

const std::vector<DType> kCopied = {f32, f64, bf16, f16, i8, u8, i16, i32, i64};

std::vector<Argument> transpose_arguments(const Problem& p) {
  const int64_t m = p.extent("m"), n = p.extent("n");
  return {{"X", p.dtype, {m, n}, false}, {"Y", p.dtype, {n, m}, true}};
}

/// A row of a tile is a line of the caches.
Program trace_transpose(const Problem& p, const Target& target) {
  if (target.gpu() != nullptr) return transpose_matrix(p.dtype, bytes(p.dtype) > 4 ? 32 : 64);
  return transpose_matrix(p.dtype, std::min<int64_t>(64 / bytes(p.dtype), 32));
}

std::vector<Problem> transpose_sweep() {
  std::vector<Problem> all;
  for (const DType t : kCopied) all.push_back(matrix_problem(37, 70, t));
  for (const auto& [m, n] :
       {std::pair<int64_t, int64_t>{1, 1}, {1, 100}, {100, 1}, {0, 5}, {64, 48}})
    all.push_back(matrix_problem(m, n, f32));
  return all;
}

std::vector<Argument> copy_arguments(const Problem& p) {
  const std::vector<int64_t> dims{p.extent("b"), p.extent("m"), p.extent("n")};
  return {{"X", p.dtype, dims, false}, {"Y", p.dtype, dims, true}};
}

/// Tiles that are as good for tensors whose rows and columns are exchanged.
Program trace_copy(const Problem& p, const Target& target) {
  if (target.gpu() == nullptr) return copy_tensor(p.dtype, {.rows = 16, .cols = 64});
  return copy_tensor(p.dtype, {.rows = bytes(p.dtype) > 4 ? 32 : 64, .cols = 64});
}

Problem tensor_problem(int64_t b, int64_t m, int64_t n, DType t) {
  return {{{"b", b}, {"m", m}, {"n", n}}, t, {}};
}

std::vector<Problem> copy_sweep() {
  std::vector<Problem> all;
  for (const DType t : kCopied) all.push_back(tensor_problem(3, 17, 70, t));
  for (const auto& [b, m, n] :
       {std::array<int64_t, 3>{1, 1, 1}, {2, 1, 100}, {2, 100, 1}, {0, 5, 3}, {1, 64, 128}})
    all.push_back(tensor_problem(b, m, n, f32));
  return all;
}

std::vector<Problem> copy_bench() {
  return {tensor_problem(1, 8192, 4096, f32), tensor_problem(1, 8192, 4096, bf16)};
}

std::vector<Problem> transpose_bench() {
  return {matrix_problem(4096, 4096, f32), matrix_problem(4096, 4096, bf16)};
}

}  // namespace

std::vector<KernelEntry> index_entries() {
  // Columns first: benchmarks verify some of the first axis, and rows cannot be left out.
  const std::vector<KernelEntry::Axis> axes = {
      {"d", 768, "columns"}, {"v", 50257, "rows to choose from"}, {"n", 8192, "ids"}};
  const KernelEntry::Option ids = {"ids", {"i32", "i64"}, "type of the ids"};
  using check::Family;
  return {{"embedding",
           "rows ids[n] of table[v, d]; an id outside gives zeros",
           Family::exact,
           axes,
           {ids},
           {f32, bf16, f16},
           embedding_arguments,
           trace_embedding,
           embedding_reference,
           embedding_sweep,
           embedding_bench},
          {"index_add",
           "base[v, d] with X[i, :] added to row ids[i], in the order of i",
           Family::reduction,
           axes,
           {ids},
           {f32},
           index_add_arguments,
           trace_index_add,
           index_add_reference,
           index_add_sweep,
           index_add_bench},
          {"index_add_sorted",
           "index_add of ids that do not decrease, by rows of Y",
           Family::reduction,
           axes,
           {ids},
           {f32},
           index_add_sorted_arguments,
           trace_index_add_sorted,
           index_add_reference,
           index_add_sweep,
           index_add_bench},
          {"copy",
           "a copy of X[b, m, n] in any layout",
           Family::exact,
           {{"b", 1, "matrices"}, {"m", 8192, "rows"}, {"n", 4096, "columns"}},
           {},
           kCopied,
           copy_arguments,
           trace_copy,
           copy_reference,
           copy_sweep,
           copy_bench},
          {"transpose",
           "a copy of X[m, n] with its axes exchanged",
           Family::exact,
           {{"m", 4096, "rows of X"}, {"n", 4096, "columns of X"}},
           {},
           kCopied,
           transpose_arguments,
           trace_transpose,
           transpose_reference,
           transpose_sweep,
           transpose_bench}};
}

}  // namespace tw::kernels
