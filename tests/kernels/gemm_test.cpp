#include "tw/kernels/gemm/gemm.h"

#include <set>

#include "tw/emit/cpu/emit_cpu.h"
#include "tw/passes/pipeline.h"

#include "tests/kernels/run_kernel.h"
#include "tests/support/expect_error.h"

namespace tw {

using kernels::GemmTiling;
using test::tensor;

/// Small integers, so that sums and the epilogues below are exact.
static std::vector<double> integers(int64_t n, int64_t seed) {
  std::vector<double> all;
  for (int64_t i = 0; i < n; ++i) all.push_back(static_cast<double>((i * 7 + seed * 3) % 5 - 2));
  return all;
}

static std::vector<double> numbers(const TensorView& t) {
  std::vector<double> all;
  for (int64_t i = 0; i < t.count(); ++i) all.push_back(get(t, i));
  return all;
}

struct Product {
  Tensor a, b;
  std::vector<double> c;
};

static Product product(int64_t m, int64_t n, int64_t k) {
  const std::vector<double> a = integers(m * k, 1), b = integers(k * n, 2);
  Product p{tensor(f32, {m, k}, a), tensor(f32, {k, n}, b), {}};
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < k; ++t) sum += a[i * k + t] * b[t * n + j];
      p.c.push_back(sum);
    }
  }
  return p;
}

TEST(Gemm, HostEntryTakesAnyLayout) {
  const Product p = product(37, 45, 50);
  EXPECT_EQ(numbers(kernels::gemm(p.a, p.b)), p.c);
  const Tensor at = copy(p.a.transpose(0, 1)).transpose(0, 1);
  const Tensor bt = copy(p.b.transpose(0, 1)).transpose(0, 1);
  EXPECT_EQ(numbers(kernels::gemm(at, p.b)), p.c);
  EXPECT_EQ(numbers(kernels::gemm(at, bt)), p.c);
  const Tensor c = kernels::gemm(p.a, p.b, {.out = f64});
  EXPECT_EQ(c.dtype(), f64);
  EXPECT_EQ(numbers(c), p.c);
}

TEST(Gemm, EpiloguesComposeInOrder) {
  using namespace kernels;
  const Product p = product(20, 33, 40);
  const Tensor row = tensor(f32, {33}, integers(33, 3)),
               column = tensor(f32, {20}, integers(20, 4));
  const Tensor both = tensor(f32, {20, 33}, integers(20 * 33, 5));
  Epilogue e = then(bias(row), activation(relu));
  e = then(e, row_scale(column));
  e = then(then(e, scale(2)), residual(f32, both));
  e = then(e, {.apply = [](const Tile& x, std::span<const Tile>) { return max(x, -3); }});
  const std::vector<double> got = numbers(gemm(p.a, p.b, {.epilogue = e}));
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t j = 0; j < 33; ++j) {
      double x = std::max(p.c[i * 33 + j] + get(row, j), 0.0) * get(column, i) * 2;
      x = std::max(x + get(both, i * 33 + j), -3.0);
      ASSERT_EQ(got[i * 33 + j], x) << i << "," << j;
    }
  }
}

TEST(Gemm, OperandsOfOneNameAreToldApart) {
  using namespace kernels;
  const Epilogue e = then(then(bias(), bias()), bias());
  ASSERT_EQ(e.operands.size(), 3u);
  EXPECT_EQ(e.operands[1].name, "bias2");
  EXPECT_EQ(e.operands[2].name, "bias3");
  EXPECT_EQ(gemm({.epilogue = e}, {}).params.size(), 6u);
}

TEST(Gemm, EveryProgramOfTheLibraryFuses) {
  for (const char* name : {"gemm", "batched_gemm"}) {
    const kernels::KernelEntry& entry = kernels::kernel_named(name);
    for (const kernels::Problem& p : entry.sweep()) {
      const kernels::Problem whole = complete(entry, p);
      Program program = entry.trace(whole, {machine_named("avx2"), 2});
      canonicalize(program);
      run_passes(program, cpu_passes(), {machine_named("avx2"), {}, {}}, true);
      int contracts = 0, dots = 0;
      walk(program, [&](const Op& op) {
        contracts += op.code == Opcode::contract;
        dots += op.code == Opcode::dot;
      });
      EXPECT_EQ(contracts, 1) << to_string(whole);
      EXPECT_EQ(dots, 0) << to_string(whole);
    }
  }
}

TEST(Gemm, RefusesWhatDoesNotFit) {
  const Tensor a = tensor(f32, {2, 3}, integers(6, 1)), h = tensor(bf16, {3, 2}, integers(6, 1));
  TW_EXPECT_ERROR(UserError, "gemm of f32[2,3]", [&] { kernels::gemm(a, a); });
  TW_EXPECT_ERROR(UserError, "wanted [M,K] and [K,N] of one type", [&] { kernels::gemm(a, h); });
}

TEST(Gemm, TilesOfAnySizeBecomeTheSameKernel) {
  for (const char* machine : {"avx2", "neon"}) {
    std::set<std::string> texts;
    for (const GemmTiling& t : {GemmTiling{}, GemmTiling{528, 1024, 256}, GemmTiling{7, 4096, 2}}) {
      Program p = kernels::gemm({.epilogue = kernels::bias_gelu()}, t);
      canonicalize(p);
      const CpuMachine& m = machine_named(machine);
      const Specialisation s = contiguous_facts(p);
      run_passes(p, cpu_passes(), {m, {}, s}, true);
      EmittedCpu e = emit_cpu(p, s, m, {}, false);
      const std::string& name = e.launch.entry;  // a hash of tiles that the text does not mention
      for (size_t at; (at = e.text.find(name)) != std::string::npos;) e.text.erase(at, name.size());
      texts.insert(e.text);
    }
    EXPECT_EQ(texts.size(), 1u) << machine;
  }
}

}  // namespace tw
