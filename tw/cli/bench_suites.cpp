#include <fmt/format.h>
#include <span>

#include "tw/base/error.h"
#include "tw/cli/bench_case.h"

namespace tw::cli {

using kernels::KernelEntry;
using kernels::Problem;

namespace {

using Extents = std::map<std::string, int64_t>;
using Options = std::map<std::string, std::string>;

BenchCase case_of(const char* kernel, Extents shape, DType t, Options options, int threads,
                  Residence inputs) {
  const KernelEntry& k = kernels::kernel_named(kernel);
  return {&k, complete(k, Problem{std::move(shape), t, std::move(options)}), threads, inputs};
}

Extents square(int64_t n) { return {{"m", n}, {"n", n}, {"k", n}}; }

constexpr int64_t kSizes[] = {64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048};

BenchPlan squares(const char* name, std::span<const int64_t> sizes) {
  BenchPlan plan{name, {}, {"openblas", "blis", "onednn", "eigen"}, true};
  for (int threads : {1, 2})
    for (int64_t n : sizes)
      plan.cases.push_back(case_of("gemm", square(n), f32, {}, threads, Residence::cache));
  return plan;
}
BenchPlan sgemm() { return squares("sgemm", kSizes); }
BenchPlan sgemm_large() {
  constexpr int64_t kLarge[] = {3072, 4096};
  return squares("sgemm-large", kLarge);
}

/// Few rows against weights that no cache holds.
BenchPlan gemm_skinny() {
  BenchPlan plan{"gemm-skinny", {}, {"openblas", "blis", "onednn", "eigen"}, true};
  for (int threads : {1, 2})
    for (int64_t n : {4096, 14336})
      for (int64_t m : {1, 4, 16, 64, 128})
        plan.cases.push_back(case_of("gemm", {{"m", m}, {"n", n}, {"k", 4096}}, f32, {}, threads,
                                     Residence::memory));
  return plan;
}

BenchPlan sgemm_layouts() {
  BenchPlan plan{"sgemm-layouts", {}, {"openblas", "blis", "onednn", "eigen"}, true};
  for (int64_t n : {256, 1024})
    for (const std::set<std::string>& t :
         std::vector<std::set<std::string>>{{"A"}, {"B"}, {"A", "B"}}) {
      plan.cases.push_back(case_of("gemm", square(n), f32, {}, 1, Residence::cache));
      plan.cases.back().transposed = t;
    }
  return plan;
}

BenchPlan gemm_gelu() {
  BenchPlan plan{"gemm-gelu", {}, {"openblas_sleef", "onednn"}};
  for (int threads : {1, 2})
    for (int64_t n : {256, 512, 1024, 2048})
      plan.cases.push_back(
          case_of("gemm", square(n), f32, {{"epilogue", "bias_gelu"}}, threads, Residence::cache));
  return plan;
}

/// The same products from bf16 and from f32.
BenchPlan gemm_bf16() {
  BenchPlan plan{"gemm-bf16", {}, {}};
  for (int threads : {1, 2})
    for (int64_t n : {256, 512, 1024, 2048}) {
      plan.cases.push_back(case_of("gemm", square(n), bf16, {}, threads, Residence::cache));
      plan.cases.back().against = f32;
    }
  return plan;
}

BenchPlan attention() {
  BenchPlan plan{"attention", {}, {"openblas_attention"}};
  for (int threads : {1, 2})
    for (const char* mask : {"causal", "none"})
      plan.cases.push_back(case_of(
          "attention",
          {{"batch", 1}, {"heads", 8}, {"kv_heads", 8}, {"sq", 1024}, {"skv", 1024}, {"head", 64}},
          f32, {{"mask", mask}}, threads, Residence::cache));
  return plan;
}

/// Rows that do not fit in any cache.
BenchPlan rows(const char* kernel, const char* peer) {
  BenchPlan plan{kernel, {}, {peer}};
  for (int threads : {1, 2})
    plan.cases.push_back(
        case_of(kernel, {{"m", 8192}, {"n", 4096}}, f32, {}, threads, Residence::memory));
  return plan;
}
BenchPlan softmax() { return rows("softmax", "onednn"); }
BenchPlan layernorm() { return rows("layernorm", "onednn"); }
BenchPlan rmsnorm() { return rows("rmsnorm", "eigen"); }

/// The same kernels on rows that the caches hold.
BenchPlan rows_in_cache() {
  BenchPlan plan{"rows-in-cache", {}, {"onednn", "eigen"}};
  for (const char* kernel : {"softmax", "layernorm", "rmsnorm"})
    for (int threads : {1, 2})
      plan.cases.push_back(
          case_of(kernel, {{"m", 128}, {"n", 1024}}, f32, {}, threads, Residence::cache));
  return plan;
}

/// One row of X against weights that no cache holds.
BenchPlan gemv_quantised(const char* name, const char* kernel,
                         const std::vector<std::pair<int64_t, const char*>>& groups,
                         std::vector<std::string> peers) {
  BenchPlan plan{name, {}, std::move(peers)};
  for (int threads : {1, 2})
    for (int64_t n : {14336, 4096})
      for (const auto& [group, scale] : groups) {
        Extents shape{{"m", 1}, {"n", n}, {"k", 4096}};
        if (group > 0) shape["group"] = group;
        const Options options = group > 0 ? Options{{"scale", scale}} : Options{};
        plan.cases.push_back(case_of(kernel, shape, f32, options, threads, Residence::memory));
      }
  return plan;
}
BenchPlan gemv_int8() { return gemv_quantised("gemv-int8", "gemv_int8", {{0, ""}}, {}); }
BenchPlan gemv_int4() {
  return gemv_quantised("gemv-int4", "gemv_int4", {{64, "f32"}, {32, "f16"}}, {});
}
/// Blocks of 32 with f16 scales are the peer's own.
BenchPlan gemv_int4_int8() {
  return gemv_quantised("gemv-int4-int8", "gemv_int4_int8", {{32, "f16"}, {64, "f16"}},
                        {"ggml_class"});
}

struct Suite {
  const char* name;
  BenchPlan (*plan)();
};
constexpr Suite kSuites[] = {{"attention", attention},

                             {"gemm-bf16", gemm_bf16},
                             {"gemm-gelu", gemm_gelu},
                             {"gemm-skinny", gemm_skinny},
                             {"gemv-int4", gemv_int4},
                             {"gemv-int4-int8", gemv_int4_int8},
                             {"gemv-int8", gemv_int8},
                             {"layernorm", layernorm},
                             {"rmsnorm", rmsnorm},
                             {"rows-in-cache", rows_in_cache},
                             {"sgemm", sgemm},
                             {"sgemm-large", sgemm_large},
                             {"sgemm-layouts", sgemm_layouts},
                             {"softmax", softmax}};

}  // namespace

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const Suite& s : kSuites) names.push_back(s.name);
  return names;
}

BenchPlan suite_named(const std::string& name) {
  for (const Suite& s : kSuites) {
    if (name != s.name) continue;
    BenchPlan plan = s.plan();
    plan.settings.blocks = 9;  // a suite is run several times
    plan.settings.most_blocks = 40;
    if (plan.best_only) plan.settings.leave_behind = 1.5;
    return plan;
  }
  throw UserError(fmt::format("no suite is called '{}'", name), did_you_mean(name, suite_names()));
}

}  // namespace tw::cli
