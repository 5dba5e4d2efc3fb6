#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/kernels/block_tile.h"
#include "tw/kernels/quant/quant.h"

namespace tw::kernels {
namespace {

using Dims = std::vector<int64_t>;

Int4Layout layout_of(const Problem& p, int64_t multiple) {
  const Int4Layout layout{p.extent("group"), p.option("scale") == "f16" ? f16 : f32,
                          p.option("zero_points") == "yes"};
  if (layout.group < multiple || layout.group % multiple != 0)
    throw UserError(
        fmt::format("a group of {} elements: wanted a multiple of {}", layout.group, multiple));
  return layout;
}

/// Codes, scales and zero points of the problem's weights.
std::vector<Argument> weights(const Problem& p, const Int4Layout& layout, bool output) {
  const int64_t n = p.extent("n"), groups = groups_of(p.extent("k"), layout.group);
  std::vector<Argument> all{{"W", u8, {n, groups, layout.group / 2}, output},
                            {"S", layout.scale, {n, groups}, output, check::Domain::finite}};
  if (layout.zero_points) all.push_back({"Z", u8, {n, (groups + 1) / 2}, output});
  return all;
}

std::vector<Argument> int8_arguments(const Problem& p) {
  const int64_t m = p.extent("m"), n = p.extent("n"), k = p.extent("k");
  return {{"X", p.dtype, {m, k}, false},
          {"W", i8, {n, k}, false},
          {"S", f32, {n}, false},
          {"Y", p.dtype, {m, n}, true}};
}

std::vector<Argument> int4_arguments(const Problem& p) {
  std::vector<Argument> all{{"X", p.dtype, {p.extent("m"), p.extent("k")}, false}};
  for (Argument& a : weights(p, layout_of(p, 2), false)) all.push_back(std::move(a));
  all.push_back({"Y", p.dtype, {p.extent("m"), p.extent("n")}, true});
  return all;
}

std::vector<Argument> int4_int8_arguments(const Problem& p) {
  const Int4Layout layout = layout_of(p, 8);
  const int64_t m = p.extent("m"), k = p.extent("k");
  std::vector<Argument> all{
      {"X", i8, {m, k}, false},
      {"SX", f32, {m, groups_of(k, layout.group)}, false, check::Domain::finite}};
  for (Argument& a : weights(p, layout, false)) all.push_back(std::move(a));
  all.push_back({"Y", f32, {m, p.extent("n")}, true});
  return all;
}

std::vector<Argument> quantize_int8_arguments(const Problem& p) {
  const Dims mk{p.extent("m"), p.extent("k")};
  const int64_t groups = groups_of(mk[1], int8_group(mk[1], p.extent("group")));
  return {{"X", p.dtype, mk, false, check::Domain::finite},
          {"Q", i8, mk, true},
          {"S", f32, {mk[0], groups}, true}};
}

std::vector<Argument> quantize_fp8_arguments(const Problem& p) {
  const Dims mk{p.extent("m"), p.extent("k")};
  return {{"X", p.dtype, mk, false, check::Domain::finite},
          {"Q", e4m3, mk, true},
          {"S", f32, {mk[0]}, true}};
}

std::vector<Argument> quantize_int4_arguments(const Problem& p) {
  std::vector<Argument> all{
      {"X", p.dtype, {p.extent("n"), p.extent("k")}, false, check::Domain::finite}};
  for (Argument& a : weights(p, layout_of(p, 2), true)) all.push_back(std::move(a));
  return all;
}

DType integer_b(const Problem& p) { return p.option("b") == "i8" ? i8 : u8; }

std::vector<Argument> integer_arguments(const Problem& p) {
  const int64_t m = p.extent("m"), n = p.extent("n"), k = p.extent("k");
  return {{"A", p.dtype, {m, k}, false},
          {"B", integer_b(p), {k, n}, false},
          {"za", p.dtype, {1}, false},
          {"zb", integer_b(p), {n}, false},
          {"C", i32, {m, n}, true}};
}

GemvTiling groups_tiling(const Problem& p, const Int4Layout& layout, const Target& target) {
  return int4_tiling(p.extent("n"), p.extent("k"), layout, target);
}
Program trace_int8(const Problem& p, const Target& target) {
  return gemv_int8(p.dtype, int8_tiling(p.extent("n"), p.extent("k"), target));
}
Program trace_int4(const Problem& p, const Target& target) {
  const Int4Layout layout = layout_of(p, 2);
  return gemv_int4(p.dtype, layout, groups_tiling(p, layout, target));
}
Program trace_nf4(const Problem& p, const Target& target) {
  const Int4Layout layout = layout_of(p, 2);
  return gemv_nf4(p.dtype, layout, groups_tiling(p, layout, target));
}
Program trace_int4_int8(const Problem& p, const Target& target) {
  const Int4Layout layout = layout_of(p, 8);
  return gemv_int4_int8(layout, groups_tiling(p, layout, target));
}
/// How many groups an instance quantises.
int64_t groups_together(const Problem& p, int64_t group, const Target& target) {
  return target.gpu() != nullptr ? groups_of_block(p.extent("k"), group) : 1;
}
Program trace_quantize_int8(const Problem& p, const Target& target) {
  const int64_t k = p.extent("k"), group = p.extent("group");
  return quantize_int8(p.dtype, k, group, groups_together(p, int8_group(k, group), target));
}
Program trace_quantize_fp8(const Problem& p, const Target& target) {
  const int64_t k = p.extent("k");
  if (const GpuMachine* gpu = target.gpu()) {
    constexpr int64_t kPart = 8192, kChunk = 2048;
    const int64_t longest = longest_kept(*gpu, 16384, bytes(p.dtype));
    if (k > longest) return quantize_fp8(p.dtype, {1, kPart, kPart, true, false});
    const BlockTile t = rows_tile(p.extent("m"), k, *gpu, longest);
    const int64_t chunk = std::max(std::min(t.cols, kChunk), t.cols / 8);
    return quantize_fp8(p.dtype, {t.rows, t.cols, chunk, true});
  }
  return quantize_fp8(p.dtype, {.cols = extent_for(k, 64, 4096)});
}
Program trace_quantize_int4(const Problem& p, const Target& target) {
  const Int4Layout layout = layout_of(p, 2);
  return quantize_int4(p.dtype, layout, groups_together(p, 2 * layout.group, target));
}
Program trace_quantize_nf4(const Problem& p, const Target& target) {
  const Int4Layout layout = layout_of(p, 2);
  return quantize_nf4(p.dtype, layout, groups_together(p, layout.group, target));
}
Program trace_integer(const Problem& p, const Target& target) {
  const bool gpu = target.gpu() != nullptr;
  return matmul_integer(p.dtype, integer_b(p), gpu ? IntegerTiling{64, 64, 64} : IntegerTiling{});
}

// ---- problems

Problem mnk(int64_t m, int64_t n, int64_t k, DType t) {
  return {{{"m", m}, {"n", n}, {"k", k}}, t, {}};
}

Problem grouped(Problem p, int64_t group, const char* scale = "f32", const char* zeros = "no") {
  p.shape["group"] = group;
  p.options = {{"scale", scale}, {"zero_points", zeros}};
  return p;
}

Problem rows(const char* axis, int64_t count, int64_t k, int64_t group, DType t) {
  return {{{axis, count}, {"k", k}, {"group", group}}, t, {}};
}

/// Odd, empty and long rows; fewer rows than a block; more of X than one.
std::vector<Problem> int8_sweep() {
  return {mnk(1, 1, 1, f32),     mnk(1, 5, 63, f32),  mnk(1, 37, 130, f32), mnk(3, 70, 257, f32),
          mnk(1, 33, 4099, f32), mnk(0, 4, 5, f32),   mnk(2, 0, 5, f32),    mnk(1, 4, 0, f32),
          mnk(2, 31, 96, bf16),  mnk(1, 9, 513, bf16)};
}

/// Odd rows, ends of K inside a group and at its half, one group, groups longer than a vector and
/// than a tile, every scale and zero points; of `narrow` also a group of all of K and shorter
/// types.
std::vector<Problem> int4_sweep(bool narrow) {
  std::vector<Problem> all{grouped(mnk(1, 1, 8, f32), 8),
                           grouped(mnk(1, 37, 160, f32), 32),
                           grouped(mnk(3, 35, 157, f32), 64, "f32", "yes"),
                           grouped(mnk(1, 7, 1100, f32), 512, "f16", "yes"),
                           grouped(mnk(1, 6, 4096 + 24, f32), 32, "f16"),
                           grouped(mnk(1, 3, 90, f32), 24, "f16"),
                           grouped(mnk(2, 0, 16, f32), 16),
                           grouped(mnk(1, 4, 0, f32), 16, "f32", "yes")};
  if (!narrow) return all;
  all.push_back(grouped(mnk(2, 33, 4500, f32), 128));
  all.push_back(grouped(mnk(1, 3, 200, f32), 200, "f32", "yes"));
  all.push_back(grouped(mnk(3, 5, 40, f32), 8, "f32", "yes"));
  all.push_back(grouped(mnk(1, 5, 7, f32), 6));
  all.push_back(grouped(mnk(1, 37, 288, bf16), 64));
  all.push_back(grouped(mnk(3, 9, 100, bf16), 32, "f16", "yes"));
  return all;
}
std::vector<Problem> gemv_int4_sweep() { return int4_sweep(true); }
std::vector<Problem> gemv_int4_int8_sweep() { return int4_sweep(false); }

Problem nf4(Problem p, int64_t group, const char* scale = "f32") {
  p.shape["group"] = group;
  p.options = {{"scale", scale}};
  return p;
}

/// As above; a tail, and rows whose end is no end of a group.
std::vector<Problem> gemv_nf4_sweep() {
  return {nf4(mnk(1, 1, 8, f32), 8),          nf4(mnk(1, 37, 192, f32), 64),
          nf4(mnk(3, 35, 157, f32), 64),      nf4(mnk(1, 7, 1100, f32), 256, "f16"),
          nf4(mnk(2, 5, 4096 + 24, f32), 64), nf4(mnk(1, 3, 90, f32), 24, "f16"),
          nf4(mnk(2, 0, 16, f32), 16),        nf4(mnk(1, 4, 0, f32), 16),
          nf4(mnk(1, 5, 7, f32), 6),          nf4(mnk(2, 9, 288, bf16), 64)};
}

std::vector<Problem> quantize_nf4_sweep() {
  std::vector<Problem> all;
  for (auto [n, k, group] :
       {std::array{1, 1, 2}, {3, 70, 64}, {2, 200, 32}, {2, 33, 10}, {0, 16, 8}})
    all.push_back(nf4(rows("n", n, k, group, f32), group, group == 32 ? "f16" : "f32"));
  all.push_back(nf4(rows("n", 4, 100, 48, bf16), 48));
  return all;
}

std::vector<Problem> quantize_int8_sweep() {
  return {rows("m", 1, 1, 64, f32),       rows("m", 3, 70, 32, f32),
          rows("m", 5, 64, 64, f32),      rows("m", 2, 9000, 9000, f32),
          rows("m", 2, 33, 7, f32),       rows("m", 2, 0, 8, f32),
          rows("m", 0, 8, 8, f32),        rows("m", 4, 100, 48, bf16),
          rows("m", 1, 12300, 6000, f32), rows("m", 3, 300, int64_t{1} << 40, f32)};
}

std::vector<Problem> quantize_fp8_sweep() {
  std::vector<Problem> all;
  for (const DType t : {f32, bf16})
    for (const auto& [m, k] : {std::pair<int64_t, int64_t>{1, 1},
                               {3, 70},
                               {33, 16},
                               {5, 64},
                               {2, 1025},
                               {2, 9000},
                               {2, 0},
                               {0, 8}})
      all.push_back({{{"m", m}, {"k", k}}, t, {}});
  return all;
}

std::vector<Problem> quantize_int4_sweep() {
  std::vector<Problem> all;
  for (const char* zeros : {"no", "yes"}) {
    for (auto [n, k, group] : {std::array{1, 1, 2},
                               {3, 70, 32},
                               {5, 64, 64},
                               {2, 1100, 512},
                               {3, 33, 10},
                               {2, 0, 8},
                               {0, 16, 8}}) {
      all.push_back(
          grouped(rows("n", n, k, group, f32), group, group == 32 ? "f16" : "f32", zeros));
    }
  }
  all.push_back(grouped(rows("n", 4, 100, 48, bf16), 48));
  return all;
}

std::vector<Problem> integer_sweep() {
  std::vector<Problem> all;
  for (const char* b : {"u8", "i8"})
    for (DType a : {u8, i8})
      for (Problem p : {mnk(7, 9, 8, a), mnk(33, 70, 130, a), mnk(1, 1, 0, a), mnk(5, 0, 4, a)}) {
        p.options["b"] = b;
        all.push_back(p);
      }
  return all;
}

std::vector<Problem> gemv_shapes() { return {mnk(1, 14336, 4096, f32), mnk(1, 4096, 4096, f32)}; }
std::vector<Problem> int4_bench() {
  std::vector<Problem> all;
  for (const Problem& p : gemv_shapes()) all.push_back(grouped(p, 64));
  return all;
}
std::vector<Problem> nf4_bench() {
  std::vector<Problem> all;
  for (const Problem& p : gemv_shapes()) all.push_back(nf4(p, 64));
  return all;
}
std::vector<Problem> quantize_nf4_bench() { return {nf4(rows("n", 4096, 4096, 64, f32), 64)}; }
std::vector<Problem> quantize_int8_bench() { return {rows("m", 1, 4096, 64, f32)}; }
std::vector<Problem> quantize_fp8_bench() {
  return {{{{"m", 4096}, {"k", 4096}}, f32, {}}, {{{"m", 4096}, {"k", 4096}}, bf16, {}}};
}
std::vector<Problem> quantize_int4_bench() { return {rows("n", 4096, 4096, 64, f32)}; }
std::vector<Problem> integer_bench() { return {mnk(256, 256, 256, u8)}; }

using check::Family;

const KernelEntry::Axis kDepthAxis{"k", 4096, "terms"},
    kGroupAxis{"group", 64, "elements that share a scale"};
const KernelEntry::Option kScaleOption{"scale", {"f32", "f16"}, "type of the scales"};
const KernelEntry::Option kZerosOption{
    "zero_points", {"no", "yes"}, "codes less those of Z, not less 8"};

std::vector<KernelEntry> quantised_products() {
  const KernelEntry::Axis m{"m", 1, "rows of X and Y"}, n{"n", 4096, "rows of W, columns of Y"};
  return {
      {"gemv_int8",
       "Y = X W^T * S: 8-bit weights, one scale a row; few rows of X",
       Family::gemm,
       {n, m, kDepthAxis},
       {},
       {f32, bf16},
       int8_arguments,
       trace_int8,
       gemv_int8_reference,
       int8_sweep,
       gemv_shapes},
      {"gemv_int4",
       "Y = X D^T: 4-bit weights D by groups; few rows of X",
       Family::gemm,
       {n, m, kDepthAxis, kGroupAxis},
       {kScaleOption, kZerosOption},
       {f32, bf16},
       int4_arguments,
       trace_int4,
       gemv_int4_reference,
       gemv_int4_sweep,
       int4_bench},
      {"gemv_int4_int8",
       "Y = X D^T: 4-bit weights D and 8-bit X, both by groups",
       Family::gemm,
       {n, m, kDepthAxis, kGroupAxis},
       {kScaleOption, kZerosOption},
       {f32},
       int4_int8_arguments,
       trace_int4_int8,
       gemv_int4_int8_reference,
       gemv_int4_int8_sweep,
       int4_bench},
      {"gemv_nf4",
       "Y = X D^T: 4-bit weights D by groups, codes of NF4; few rows of X",
       Family::gemm,
       {n, m, kDepthAxis, kGroupAxis},
       {kScaleOption},
       {f32, bf16},
       int4_arguments,
       trace_nf4,
       gemv_nf4_reference,
       gemv_nf4_sweep,
       nf4_bench},
  };
}

std::vector<KernelEntry> quantisers_and_integers() {
  return {
      {"quantize_int8",
       "8-bit integers and scales by groups of the rows of X[m, k]",
       Family::exact,
       {{"m", 1, "rows"}, kDepthAxis, kGroupAxis},
       {},
       {f32, bf16},
       quantize_int8_arguments,
       trace_quantize_int8,
       quantize_int8_reference,
       quantize_int8_sweep,
       quantize_int8_bench},
      {"quantize_fp8",
       "e4m3 numbers and one scale for each row of X[m, k]",
       Family::exact,
       {{"m", 4096, "rows"}, kDepthAxis},
       {},
       {f32, bf16},
       quantize_fp8_arguments,
       trace_quantize_fp8,
       quantize_fp8_reference,
       quantize_fp8_sweep,
       quantize_fp8_bench},
      {"quantize_int4",
       "4-bit codes, scales and zero points by groups of the rows of X[n, k]",
       Family::exact,
       {{"n", 4096, "rows"}, kDepthAxis, kGroupAxis},
       {kScaleOption, kZerosOption},
       {f32, bf16},
       quantize_int4_arguments,
       trace_quantize_int4,
       quantize_int4_reference,
       quantize_int4_sweep,
       quantize_int4_bench},
      {"quantize_nf4",
       "NF4 codes and scales by groups of the rows of X[n, k]",
       Family::exact,
       {{"n", 4096, "rows"}, kDepthAxis, kGroupAxis},
       {kScaleOption},
       {f32, bf16},
       quantize_int4_arguments,
       trace_quantize_nf4,
       quantize_nf4_reference,
       quantize_nf4_sweep,
       quantize_nf4_bench},
      {"matmul_integer",
       "C = (A - za)(B - zb) of 8-bit integers, exact in i32",
       Family::exact,
       {{"m", 256, "rows of A"}, {"n", 256, "columns of B"}, {"k", 256, "terms"}},
       {{"b", {"u8", "i8"}, "type of B"}},
       {u8, i8},
       integer_arguments,
       trace_integer,
       matmul_integer_reference,
       integer_sweep,
       integer_bench},
  };
}

}  // namespace

std::vector<KernelEntry> quant_entries() {
  std::vector<KernelEntry> all = quantised_products();
  for (KernelEntry& k : quantisers_and_integers()) all.push_back(std::move(k));
  return all;
}

}  // namespace tw::kernels
