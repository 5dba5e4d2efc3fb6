#include "tw/kernels/scaled/reference.h"
#include "tw/kernels/scaled/scaled.h"

namespace tw::kernels {
namespace {

using check::Domain;

std::vector<Argument> gemm_scaled_arguments(const Problem& p) {
  const ScaledOperands formats = operands_named(p.option("format"));
  const int64_t m = p.extent("m"), n = p.extent("n"), k = p.extent("k");
  std::vector<Argument> all;
  const auto add = [&](const char* name, const char* scale, const ScaledFormat& f, int64_t rows) {
    all.push_back({name, f.element, {rows, k}, false});
    const auto [high, wide] = f.block;
    all.push_back(
        {scale, f.scale, {(rows + high - 1) / high, (k + wide - 1) / wide}, false, Domain::small});
  };
  add("A", "A_scale", formats.a, m);
  add("B", "B_scale", formats.b, n);
  all.push_back({"C", p.dtype, {m, n}, true});
  return all;
}

Program trace_gemm_scaled(const Problem& p, const Target&) {
  return gemm_scaled(operands_named(p.option("format")), p.dtype);
}

Problem scaled_problem(int64_t m, int64_t n, int64_t k, DType out, const char* format) {
  return {{{"m", m}, {"n", n}, {"k", k}}, out, {{"format", format}}};
}

const char* const kFormats[] = {"mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3",
                                "mxfp4",      "nvfp4",      "fp8",        "fp8_rows"};

/// Every format once with ends inside a tile and a block; thin, empty and larger ones.
std::vector<Problem> gemm_scaled_sweep() {
  std::vector<Problem> all;
  for (const char* format : kFormats) all.push_back(scaled_problem(17, 70, 205, f32, format));
  for (auto [m, n, k] : {std::array{1, 1, 1}, {3, 5, 0}, {0, 4, 32}})
    all.push_back(scaled_problem(m, n, k, f32, "mxfp4"));
  all.push_back(scaled_problem(5, 140, 300, f32, "fp8"));
  all.push_back(scaled_problem(9, 5, 64, bf16, "mxfp8_e4m3"));
  return all;
}

std::vector<Problem> gemm_scaled_bench() {
  std::vector<Problem> all;
  for (const char* format : {"mxfp8_e4m3", "mxfp6_e3m2", "mxfp4", "nvfp4", "fp8"})
    all.push_back(scaled_problem(512, 512, 1024, f32, format));
  return all;
}

DType element_of(const Problem& p) { return *dtype_named(p.option("element")); }

std::vector<Argument> quantize_mx_arguments(const Problem& p) {
  const int64_t m = p.extent("m"), k = p.extent("k");
  return {{"X", p.dtype, {m, k}, false},
          {"E", element_of(p), {m, k}, true},
          {"E_scale", e8m0, {m, (k + 31) / 32}, true}};
}

Program trace_quantize_mx(const Problem& p, const Target&) {
  return quantize_mx(p.dtype, element_of(p));
}

Problem quantize_problem(int64_t m, int64_t k, DType t, const char* element) {
  return {{{"m", m}, {"k", k}}, t, {{"element", element}}};
}

std::vector<Problem> quantize_mx_sweep() {
  std::vector<Problem> all;
  for (const char* element : {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"})
    all.push_back(quantize_problem(5, 301, f32, element));
  for (auto [m, k] : {std::array{1, 1}, {9, 32}, {3, 0}, {0, 64}, {17, 600}})
    all.push_back(quantize_problem(m, k, f32, "e2m1"));
  all.push_back(quantize_problem(4, 97, bf16, "e2m1"));
  return all;
}

std::vector<Problem> quantize_mx_bench() {
  return {quantize_problem(1024, 4096, f32, "e4m3"), quantize_problem(1024, 4096, f32, "e2m1")};
}

}  // namespace

std::vector<KernelEntry> scaled_entries() {
  return {
      {"gemm_scaled",
       "C = A B^T of block-scaled matrices A[m, k], B[n, k]",
       check::Family::gemm,
       {{"m", 512, "rows of A and C"}, {"n", 512, "rows of B, columns of C"}, {"k", 1024, "terms"}},
       {{"format", {std::begin(kFormats), std::end(kFormats)}, "elements and scales of A and B"}},
       {f32, bf16},
       gemm_scaled_arguments,
       trace_gemm_scaled,
       gemm_scaled_reference,
       gemm_scaled_sweep,
       gemm_scaled_bench},
      {"quantize_mx",
       "elements E and scales of X[m, k], as OCP Microscaling converts",
       check::Family::exact,
       {{"m", 1024, "rows"}, {"k", 4096, "elements of a row"}},
       {{"element", {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"}, "type of the elements"}},
       {f32, bf16},
       quantize_mx_arguments,
       trace_quantize_mx,
       quantize_mx_reference,
       quantize_mx_sweep,
       quantize_mx_bench}};
}

}  // namespace tw::kernels
