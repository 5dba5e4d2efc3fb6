#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>

#include "tw/base/round.h"
#include "tw/check/bound.h"
#include "tw/emit/cuda/emit_cuda.h"
#include "tw/emu/emulator.h"
#include "tw/interp/interpreter.h"
#include "tw/jit/nvrtc.h"
#include "tw/lang/lang.h"
#include "tw/passes/pipeline.h"
#include "tw/tensor/tensor.h"

namespace tw::test {
namespace {

/// C = A B for one grid of tiles, with axes of A and B along which memory is contiguous.
struct Product {
  std::string name;
  DType in = bf16, sum = f32;
  int64_t bm = 64, bn = 64, bk = 32;
  int64_t m = 100, n = 72, k = 70;
  bool aligned = true;
  int a_unit = 1, b_unit = 1;
  std::map<std::string, int64_t> knobs = {};
  Precision precision = Precision::ieee;
};

Product with(Precision precision, Product p) {
  p.precision = precision;
  return p;
}

const Product kProducts[] = {
    {"bf16"},
    {"f16", f16},
    {"bf16_all_transposed", bf16, f32, 64, 64, 32, 100, 72, 70, true, 0, 0},
    {"bf16_right_transposed", bf16, f32, 32, 64, 32, 50, 72, 70, true, 1, 0, {{"stages", 2}}},
    {"bf16_odd_tiles", bf16, f32, 17, 23, 37, 40, 50, 41, false},
    {"bf16_odd_shape", bf16, f32, 64, 64, 32, 17, 23, 37, false},
    {"f16_tiles_of_no_power", f16, f32, 48, 80, 24, 50, 81, 60},
    {"bf16_one_stage", bf16, f32, 32, 32, 16, 40, 40, 40, true, 1, 1, {{"stages", 1}}},
    {"bf16_one_warp", bf16, f32, 16, 8, 16, 20, 20, 40},
    {"bf16_four_warps_spare", bf16, f32, 16, 8, 16, 20, 20, 40, true, 1, 1, {{"warps", 4}}},
    {"e4m3", e4m3, f32, 32, 32, 32, 40, 40, 50},
    {"i8", i8, i32, 64, 64, 64, 70, 72, 100},
    {"i8_transposed", i8, i32, 32, 32, 64, 70, 72, 100, true, 0, 0},
    {"u8_odd", u8, i32, 20, 28, 40, 30, 30, 50, false},
    {"f64", f64, f64, 32, 32, 16, 40, 40, 30},
    {"f64_transposed", f64, f64, 32, 32, 16, 40, 40, 30, true, 0, 0},
    {"f64_odd", f64, f64, 17, 23, 13, 20, 30, 20, false},
    {"f32", f32, f32, 64, 64, 16, 70, 80, 40},
    {"f32_transposed", f32, f32, 64, 32, 16, 70, 40, 40, true, 0, 0},
    {"f32_odd", f32, f32, 17, 23, 37, 20, 30, 40, false},
    with(Precision::tf32, {"tf32", f32, f32, 64, 64, 16, 70, 80, 40}),
    with(Precision::tf32, {"tf32_transposed", f32, f32, 64, 32, 16, 70, 40, 40, true, 0, 0}),
    with(Precision::tf32, {"tf32_odd", f32, f32, 17, 23, 37, 20, 30, 40, false}),
    with(Precision::tf32x3, {"tf32x3", f32, f32, 64, 64, 16, 70, 80, 40}),
    with(Precision::tf32x3, {"tf32x3_transposed", f32, f32, 64, 32, 16, 70, 40, 40, true, 0, 0}),
    with(Precision::tf32x3, {"tf32x3_odd", f32, f32, 17, 23, 37, 20, 30, 40, false}),
};

Program traced(const Product& p) {
  Trace k("product");
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  TensorRef A = k.input("A", p.in, {M, K}), B = k.input("B", p.in, {K, N});
  TensorRef C = k.output("C", p.sum, {M, N});
  auto [m, n] = k.grid(cdiv(M, p.bm), cdiv(N, p.bn));
  Tile sum = k.zeros(p.sum, {p.bm, p.bn});
  for (Index i : k.range(cdiv(K, p.bk))) {
    Tile a = load(A.tile({m, i}, {p.bm, p.bk})), b = load(B.tile({i, n}, {p.bk, p.bn}));
    sum = dot(a, b, sum, {p.precision});
  }
  store(C.tile({m, n}, {p.bm, p.bn}), sum);
  return k.finish();
}

EmittedCuda emitted(Program p, const std::vector<int>& units, bool aligned,
                    const std::map<std::string, int64_t>& knobs, cpu::Thread kind,
                    const char* arch = "sm_90a") {
  canonicalize(p);
  Specialisation s = contiguous_facts(p);
  for (size_t k = 0; k < s.params.size(); ++k) {
    s.params[k].aligned = aligned;
    s.params[k].unit_axis = units[k];
  }
  const Mapping mapping{"cuda1", knobs};
  run_passes(p, cuda_passes(), {machine_named("generic"), mapping, s}, true);
  return emit_cuda(p, s, gpu_named(arch), mapping, false, kind);
}

/// A tensor with memory along axis `unit`, whose lines begin at multiples of 16 bytes when aligned.
Tensor random_tensor(DType t, int64_t rows, int64_t columns, int unit, bool aligned,
                     std::mt19937& random) {
  const int64_t line = unit == 1 ? columns : rows;
  const int64_t pitch = aligned ? round_up(line, 16 / bytes(t)) : line + 1;
  const int64_t lines = unit == 1 ? rows : columns;
  Tensor all = host_tensor(t, {lines, pitch});
  std::uniform_int_distribution<int> any(-8, 8);
  std::uniform_real_distribution<double> real(-2, 2);
  for (int64_t i = 0; i < all.count(); ++i)
    set(all, i,
        t == f32  ? real(random)
        : t == u8 ? any(random) + 8
                  : any(random) / (is_float(t) ? 4.0 : 1.0));
  const Tensor part = all.slice(1, 0, line);
  return unit == 1 ? part : part.transpose(0, 1);
}

/// The largest error over its bound.
double worst(const Product& p, const Tensor& a, const Tensor& b, const Tensor& c) {
  const std::vector<double> x = to_doubles(a), y = to_doubles(b), got = to_doubles(c);
  const check::Family family = is_float(p.sum) ? check::Family::gemm : check::Family::exact;
  const check::Accuracy accuracy{
      .family = family, .out = p.sum, .accumulate = p.sum, .precision = p.precision, .terms = p.k};
  double most = 0;
  for (int64_t i = 0; i < p.m * p.n; ++i) {
    double sum = 0, all = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      const double term = x[i / p.n * p.k + k] * y[k * p.n + i % p.n];
      sum += term;
      all += std::abs(term);
    }
    most = std::max(most, check::error_ratio(p.sum, got[i], sum, check::bound(accuracy, sum, all)));
  }
  return most;
}

/// The extent that the tensors of a program give one of its dims.
int64_t extent_of(const Program& p, const std::string& dim,
                  const std::vector<std::vector<int64_t>>& shapes) {
  for (size_t k = 0; k < shapes.size(); ++k) {
    for (size_t axis = 0; axis < shapes[k].size(); ++axis) {
      const Expr& e = p.params[k].dims[axis];
      if (e.kind() == Expr::Kind::symbol && p.dims[static_cast<size_t>(e.symbol().id)].name == dim)
        return shapes[k][axis];
    }
  }
  return 0;
}

class Products : public testing::TestWithParam<Product> {};

TEST_P(Products, AreRightAndCleanInTheEmulator) {
  const Product& p = GetParam();
  const EmittedCuda e =
      emitted(traced(p), {p.a_unit, p.b_unit, 1}, p.aligned, p.knobs, cpu::Thread::emulated);
  EXPECT_EQ(e.text.find("_tf32(") != std::string::npos, p.precision != Precision::ieee);
  for (uint64_t seed = 0; seed < 8; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const Tensor a = random_tensor(p.in, p.m, p.k, p.a_unit, p.aligned, random);
    const Tensor b = random_tensor(p.in, p.k, p.n, p.b_unit, p.aligned, random);
    const Tensor c = random_tensor(p.sum, p.m, p.n, 1, p.aligned, random);
    const EmuReport report = run_emulated(e.text, e.launch, std::vector<TensorView>{a, b, c},
                                          std::vector<int64_t>{p.m, p.n, p.k}, {.seed = seed});
    ASSERT_TRUE(report.clean()) << report.text;
    ASSERT_LE(worst(p, a, b, c), 1) << "seed " << seed;
  }
}

TEST_P(Products, AreCudaWithoutSpills) {
  const Product& p = GetParam();
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const EmittedCuda e =
        emitted(traced(p), {p.a_unit, p.b_unit, 1}, p.aligned, p.knobs, cpu::Thread::cuda, arch);
    EXPECT_EQ(compile_cubin(find_nvrtc(), arch, e.text, false).spill_bytes, 0) << arch;
  }
}

/// Infinities, NaN, the largest and the smallest numbers among others: as the interpreter says.
TEST(Precisions, KeepSpecialValues) {
  for (const Precision precision : {Precision::tf32, Precision::tf32x3}) {
    Product product = with(precision, {"", f32, f32, 32, 32, 16, 40, 40, 40});
    const Program p = traced(product);
    const EmittedCuda e = emitted(p, {1, 1, 1}, true, {}, cpu::Thread::emulated);
    std::mt19937 random(1);
    const Tensor a = random_tensor(f32, 40, 40, 1, true, random);
    const Tensor b = random_tensor(f32, 40, 40, 1, true, random);
    const Tensor c = random_tensor(f32, 40, 40, 1, true, random);
    const double special[] = {INFINITY, -INFINITY, NAN, 0x1.fffffep127, 0x1p-149, 0x1.234p-127};
    for (int64_t k = 0; k < 6; ++k) {
      set(a, 45 * k + 3, special[k]);
      set(b, 83 * k + 7, special[k]);
    }
    for (int64_t k = 0; k < 40; ++k) {  // what has no small part
      set(a, 39 * 40 + k, 1);
      set(b, 40 * k + 39, -1);
    }
    const EmuReport report = run_emulated(e.text, e.launch, std::vector<TensorView>{a, b, c},
                                          std::vector<int64_t>{40, 40, 40}, {});
    ASSERT_TRUE(report.clean()) << report.text;
    const Interpretation want =
        interpret(p, {a, b}, {copy(c)}, {}, {.mode = InterpretMode::bounded});
    const std::vector<double> got = to_doubles(c);
    int infinite = 0, nan = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const Scalar& w = want.outputs[0][i];
      if (w.undecided) continue;
      infinite += std::isinf(w.f);
      nan += std::isnan(w.f);
      if (std::isfinite(w.f)) {
        ASSERT_LE(std::abs(got[i] - w.f), w.bound) << i;
      } else {
        ASSERT_TRUE(std::isnan(w.f) ? std::isnan(got[i]) : got[i] == w.f) << got[i] << " " << w.f;
      }
    }
    EXPECT_GT(infinite, 40);
    EXPECT_GT(nan, 40);
  }
}

/// Dots whose operands or sums are used in other ways, on tensors X, Y, Z of [96, 64] and more.
struct Chain {
  std::string name;
  Program (*trace)();
  std::vector<std::vector<int64_t>> shapes;  ///< of the inputs, then of the output
};

/// Attention of one head: scores and weighted sums of 16-bit tiles, folds of sums along rows.
Program attention_of(int64_t queries, int64_t keys, int64_t head) {
  Trace k("attention");
  Index S = k.dim("S"), D = k.dim("D");
  TensorRef Q = k.input("Q", bf16, {S, D}), K = k.input("K", bf16, {S, D});
  TensorRef V = k.input("V", bf16, {S, D}), O = k.output("O", f32, {S, D});
  const auto [i] = k.grid(cdiv(S, queries));
  Tile x = load(Q.tile({i, 0}, {queries, head}));
  Tile top = k.full(f32, {queries, 1}, -1e30F), sum = k.zeros(f32, {queries, 1});
  Tile out = k.zeros(f32, {queries, head});
  for (Index j : k.range(cdiv(S, keys))) {
    Tile y = load(K.tile({j, 0}, {keys, head})), v = load(V.tile({j, 0}, {keys, head}));
    Tile s = dot(x, transpose(y), k.zeros(f32, {queries, keys})) * 0.25F;
    s = where(k.iota({1, keys}, 1) + j * keys < S, s, -1e30F);
    Tile next = max(top, row_max(s));
    Tile p = exp(s - next), shrink = exp(top - next);
    sum = sum * shrink + row_sum(p);
    out = dot(cast(p, bf16), v, out * shrink);
    top = next;
  }
  store(O.tile({i, 0}, {queries, head}), out / sum);
  return k.finish();
}

/// Operands that are computed, in a loop and before it; sums that an epilogue and a fold read.
Program computed_operands() {
  Trace k("computed");
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  TensorRef A = k.input("A", f16, {M, K}), B = k.input("B", f16, {K, N});
  TensorRef C = k.output("C", f32, {M, N});
  auto [m, n] = k.grid(cdiv(M, 32), cdiv(N, 32));
  Tile first = max(load(A.tile({m, 0}, {32, 16})), 0.F);
  Tile sum = k.zeros(f32, {32, 32});
  for (Index i : k.range(cdiv(K, 16))) {
    Tile a = load(A.tile({m, i}, {32, 16})) * 2.F, b = load(B.tile({i, n}, {16, 32}));
    sum = dot(a, b, sum);
    sum = dot(first, b + 1.F, sum);
  }
  store(C.tile({m, n}, {32, 32}), max(sum, 0.F) - row_sum(sum) + col_max(sum));
  return k.finish();
}

/// A dot of sums that are f32, and one of transposed tiles that lie in registers too.
Program sums_of_sums() {
  Trace k("sums");
  Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  TensorRef A = k.input("A", f32, {M, K}), B = k.input("B", f32, {K, N});
  TensorRef C = k.output("C", f32, {M, N});
  const auto [m] = k.grid(cdiv(M, 24));
  Tile a = load(A.tile({m, 0}, {24, 40})), b = load(B.tile({0, 0}, {40, 20}));
  Tile gram = dot(a, transpose(a), k.zeros(f32, {24, 24}));
  Tile sum = dot(gram, dot(a, b, k.zeros(f32, {24, 20})), k.full(f32, {24, 20}, 1));
  store(C.tile({m, 0}, {24, 20}), sum + row_max(a));
  return k.finish();
}

const Chain kChains[] = {
    {"attention",
     [] { return attention_of(32, 32, 32); },
     {{72, 32}, {72, 32}, {72, 32}, {72, 32}}},
    {"attention_of_many_queries",
     [] { return attention_of(64, 32, 16); },
     {{72, 16}, {72, 16}, {72, 16}, {72, 16}}},
    {"attention_of_odd_tiles",
     [] { return attention_of(24, 40, 24); },
     {{50, 24}, {50, 24}, {50, 24}, {50, 24}}},
    {"computed_operands", computed_operands, {{40, 40}, {40, 48}, {40, 48}}},
    {"sums_of_sums", sums_of_sums, {{30, 40}, {40, 20}, {30, 20}}},
};

class Chains : public testing::TestWithParam<Chain> {};

TEST_P(Chains, AreWhatTheInterpreterSays) {
  const Chain& chain = GetParam();
  const Program p = chain.trace();
  const std::vector<int> units(chain.shapes.size(), 1);
  for (const bool aligned : {true, false}) {
    const EmittedCuda e = emitted(p, units, aligned, {}, cpu::Thread::emulated);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      std::mt19937 random(static_cast<uint32_t>(seed));
      std::vector<TensorView> views;
      std::vector<Tensor> tensors;
      for (size_t k = 0; k < chain.shapes.size(); ++k) {
        const std::vector<int64_t>& shape = chain.shapes[k];
        tensors.push_back(random_tensor(p.params[k].dtype, shape[0], shape[1], 1, aligned, random));
        views.push_back(tensors[k]);
      }
      std::vector<int64_t> dims;
      for (const auto& d : e.launch.dims) dims.push_back(extent_of(p, d.name, chain.shapes));
      const EmuReport report = run_emulated(e.text, e.launch, views, dims, {.seed = seed});
      ASSERT_TRUE(report.clean()) << report.text;
      const std::vector<double> got = to_doubles(views.back());
      const Interpretation want = interpret(p, {views.begin(), views.end() - 1}, {views.back()}, {},
                                            {.mode = InterpretMode::bounded});
      for (size_t i = 0; i < got.size(); ++i) {
        const Scalar& w = want.outputs[0][i];
        if (w.undecided) continue;
        ASSERT_LE(std::abs(got[i] - w.f), w.bound) << "element " << i << ", seed " << seed;
      }
      ASSERT_LT(want.undecided() * 100, want.count());
    }
  }
}

TEST_P(Chains, AreCudaWithoutSpills) {
  const Chain& chain = GetParam();
  const std::vector<int> units(chain.shapes.size(), 1);
  const EmittedCuda e = emitted(chain.trace(), units, true, {}, cpu::Thread::cuda);
  EXPECT_EQ(compile_cubin(find_nvrtc(), "sm_90a", e.text, false).spill_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Chains, testing::ValuesIn(kChains),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(All, Products, testing::ValuesIn(kProducts),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tw::test
