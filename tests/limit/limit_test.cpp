#include "tw/limit/limit.h"

#include <cmath>
#include <gtest/gtest.h>

#include "tw/base/error.h"
#include "tw/ir/print.h"

#include "tests/support/expect_error.h"

namespace tw {
namespace {

Work work(const std::string& text, std::vector<int64_t> dims) {
  return least_work(parse(text), dims);
}

const char* const kGemm = R"(program gemm
dim M
dim N
dim K
in A: f16[M, K]
in B: f16[K, N]
in bias: f32[N]
out C: f16[M, N]
grid (cdiv(M, 64), cdiv(N, 128))

%0 = full 0 : f32[64,128]
%1 = for i0 in 0..cdiv(K, 64) step 1 carry (%2 = %0) : f32[64,128] {
  %3 = load A{pid0*64, i0*64} : f16[64,64]
  %4 = load B{i0*64, pid1*128} : f16[64,128]
  %5 = dot ieee %3, %4, %2 : f32[64,128]
  yield %5
}
%6 = load bias{pid1*128} : f32[128]
%7 = reshape %6 : f32[1,128]
%8 = add %1, %7 : f32[64,128]
%9 = exp %8 : f32[64,128]
%10 = cast %8 : f16[64,128]
store %10 to C{pid0*64, pid1*128}
)";

TEST(LeastWork, OfAProductCountsNoPaddingAndNoDeadCode) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{128, 256, 192}, {65, 129, 67}, {1, 1, 1}}) {
    const Work w = work(kGemm, {m, n, k});
    EXPECT_EQ(std::llround(w.flops), 2 * m * n * k + m * n) << m;  // %9 is dead
    EXPECT_EQ(w.bytes_read, 2 * (m * k + k * n) + 4 * n) << m;
    EXPECT_EQ(w.bytes_written, 2 * m * n) << m;
  }
}

TEST(LeastWork, PackedElementsCountTheirBits) {
  const Work w = work(R"(program packed
dim M
dim N
in X: e3m2[M, N]
out Y: i4[M, N]
grid (cdiv(M, 8), cdiv(N, 64))

%0 = load X{pid0*8, pid1*64} : e3m2[8,64]
%1 = cast %0 : i4[8,64]
store %1 to Y{pid0*8, pid1*64}
)",
                      {24, 128});
  EXPECT_EQ(w.bytes_read, 24 * 128 * 6 / 8);
  EXPECT_EQ(w.bytes_written, 24 * 128 / 2);
}

TEST(LeastWork, OfNothingIsNothing) {
  const Work w = work(kGemm, {0, 128, 64});
  EXPECT_EQ(w.bytes_written, 0);
  EXPECT_EQ(w.flops, 0);
  EXPECT_EQ(work(kGemm, {64, 128, 0}).flops, 64 * 128);
}

TEST(LeastWork, ReadsATensorOnceHoweverOftenItIsLoaded) {
  const Work w = work(R"(program twice
dim N
in X: f32[N]
out Y: f32[N]
grid (cdiv(N, 8))

%0 = load X{pid0*8} : f32[8]
%1 = load X{pid0*8} : f32[8]
%2 = mul %0, %1 : f32[8]
store %2 to Y{pid0*8}
)",
                      {100});
  EXPECT_EQ(w.bytes_read, 400);
  EXPECT_EQ(w.bytes_written, 400);
  EXPECT_EQ(std::llround(w.flops), 100);
}

TEST(LeastWork, ReadsNoMoreThanIsTouched) {
  const Work w = work(R"(program first_row
dim M
dim N
in X: f32[M, N]
in unused: f32[M, N]
out Y: f32[N]
grid (cdiv(N, 8))

%0 = load X[0]{pid0*8} : f32[8]
store %0 to Y{pid0*8}
)",
                      {50, 100});
  EXPECT_EQ(w.bytes_read, 400);
}

TEST(LeastWork, LoopsThatDependOnTheInstanceAreFollowed) {
  // Instance p adds its first p + 1 rows: 1 + 2 + .. + 10.
  const Work w = work(R"(program triangle
dim M
in X: f32[M, 4]
out Y: f32[M, 4]
grid (M)

%0 = full 0 : f32[1,4]
%1 = for i0 in 0..pid0 + 1 step 1 carry (%2 = %0) : f32[1,4] {
  %3 = load X{i0, 0} : f32[1,4]
  %4 = add %2, %3 : f32[1,4]
  yield %4
}
store %1 to Y{pid0, 0}
)",
                      {10});
  EXPECT_EQ(w.flops, 4 * 55);
}

TEST(LeastWork, BranchesOfSizesAreDecidedOthersAreTheCheaperSide) {
  const std::string text = R"(program branch
dim M
in X: f32[M]
out Y: f32[M]
grid (M)

if CONDITION {
  %0 = load X{pid0} : f32[1]
  %1 = exp %0 : f32[1]
  store %1 to Y{pid0}
} else {
  %2 = full 0 : f32[1]
  store %2 to Y{pid0}
}
)";
  const auto with = [&](const std::string& condition) {
    std::string t = text;
    t.replace(t.find("CONDITION"), 9, condition);
    return work(t, {10});
  };
  EXPECT_EQ(with("M < 20").flops, 10);
  EXPECT_EQ(with("M < 5").flops, 0);
  EXPECT_EQ(with("pid0 < 5").flops, 0);
  EXPECT_EQ(with("pid0 < 5").bytes_written, 40);
  EXPECT_EQ(with("pid0 < 5").bytes_read, 0);
}

TEST(LeastWork, WantsEveryDim) {
  TW_EXPECT_ERROR(UserError, "program 'gemm' has 3 dims, 2 values were given", [] {
    work(kGemm, {1, 2});
  });
}

TEST(Limit, IsTheSlowerResource) {
  Rates rates = vector_rates(1000);
  rates.memory = {.read = 10, .write = 5, .copy = 8};
  rates.cache = {.read = 1e6, .write = 1e6, .copy = 1e6};
  const Program p = parse(kGemm);
  const std::vector<int64_t> dims = {64, 128, 64};
  const Limit memory = limit(p, dims, rates, Residence::memory);
  EXPECT_EQ(memory.bound(), Resource::bandwidth);
  EXPECT_EQ(std::string(name(memory.bound())), "bandwidth");
  const double read = 2 * (64 * 64 + 64 * 128) + 4 * 128, written = 2 * 64 * 128;
  EXPECT_EQ(memory.time_us(), 2 * written / 8 + (read - written) / 10);
  EXPECT_EQ(memory.work.bytes(), static_cast<int64_t>(read + written));
  const Limit cache = limit(p, dims, rates, Residence::cache);
  EXPECT_EQ(cache.bound(), Resource::arithmetic);
  EXPECT_EQ(cache.time_us(), (2.0 * 64 * 128 * 64 + 64 * 128) / 1000);
}

// What a gather reads may lie anywhere: at most every element once, at most the tensor. Scratch
// moves nothing.
TEST(LeastWork, OfGathersAndScatters) {
  const char* const text = R"(program lookup
dim V
dim N
in X: f32[V, 100]
in ids: i32[N]
out Y: f32[N, 100]
inout Z: i32[V]
scratch S: i32[64]
grid (cdiv(N, 8))

%0 = load ids{pid0*8} : i32[8]
%1 = reshape %0 : i32[8,1]
%2 = iota axis 1 : i64[1,100]
%3 = gather X{%1, %2} : f32[8,100]
scatter %3 to Y{%1, %2}
%4 = full 1 : i32[8]
atomic add relaxed device %4 to Z{%0}
scatter %4 to S{%0}
)";
  for (const int64_t v : {20, 100000}) {
    const Work w = work(text, {v, 60});
    EXPECT_EQ(w.bytes_read, 4 * (std::min<int64_t>(v * 100, 6000) + 60 + std::min<int64_t>(v, 60)));
    EXPECT_EQ(w.bytes_written, 4 * (6000 + std::min<int64_t>(v, 60)));
    EXPECT_EQ(std::llround(w.flops), 60);
  }
}

TEST(LeastWork, CountsByUnit) {
  const Work w = work(kGemm, {65, 129, 67});
  EXPECT_EQ(std::llround(w.of(Unit::dot_half)), 2 * 65 * 129 * 67);
  EXPECT_EQ(std::llround(w.of(Unit::f32)), 65 * 129);
  EXPECT_EQ(std::llround(w.of(Unit::convert)), 65 * 129);
  EXPECT_EQ(w.of(Unit::special), 0);  // the exp is dead
}

TEST(LeastWork, ProductsByTypeAndPrecision) {
  const auto product = [](const std::string& type, const std::string& precision) {
    const std::string sum = type == "i8" ? "i32" : type == "f64" ? "f64" : "f32";
    return work("program dots\nin A: " + type + "[16, 32]\nin B: " + type +
                    "[32, 8]\nout C: " + sum + "[16, 8]\ngrid (1)\n\n%0 = full 0 : " + sum +
                    "[16,8]\n%1 = load A{0, 0} : " + type + "[16,32]\n%2 = load B{0, 0} : " + type +
                    "[32,8]\n%3 = dot " + precision + " %1, %2, %0 : " + sum +
                    "[16,8]\nstore %3 to C{0, 0}\n",
                {});
  };
  const double flops = 2 * 16 * 32 * 8;
  EXPECT_EQ(product("f32", "ieee").of(Unit::dot_f32), flops);
  EXPECT_EQ(product("f32", "tf32").of(Unit::dot_tf32), flops);
  EXPECT_EQ(product("f32", "tf32x3").of(Unit::dot_tf32), 3 * flops);
  EXPECT_EQ(product("f32", "tf32x3").flops, flops);
  EXPECT_EQ(product("bf16", "ieee").of(Unit::dot_half), flops);
  EXPECT_EQ(product("f64", "ieee").of(Unit::dot_f64), flops);
  EXPECT_EQ(product("i8", "ieee").of(Unit::dot_i8), flops);
  EXPECT_EQ(product("i8", "ieee").flops, 0);
}

TEST(LeastWork, FunctionsCastsAndBits) {
  const Work w = work(R"(program mixed
dim N
in X: f32[N]
in I: i32[N]
out Y: bf16[N]
out J: i32[N]
grid (cdiv(N, 8))

%0 = load X{pid0*8} : f32[8]
%1 = exp %0 : f32[8]
%2 = rsqrt %1 : f32[8]
%3 = cast %2 : bf16[8]
store %3 to Y{pid0*8}
%4 = load I{pid0*8} : i32[8]
%5 = and %4, %4 : i32[8]
%6 = add %5, %4 : i32[8]
store %6 to J{pid0*8}
)",
                      {100});
  EXPECT_EQ(std::llround(w.of(Unit::special)), 200);
  EXPECT_EQ(std::llround(w.of(Unit::convert)), 100);
  EXPECT_EQ(std::llround(w.of(Unit::integer)), 200);
  EXPECT_EQ(std::llround(w.flops), 200);
}

/// A load of 1024 us, a function of 128, an addition of 16, a product of 4.
constexpr Latency kSlow = {
    .memory_us = 1024, .cache_us = 512, .arithmetic_us = 16, .special_us = 128, .matrix_us = 4};

double chain_of_loop(const std::string& body, int64_t trips, Residence where = Residence::memory) {
  const Program p = parse(R"(program loop
dim N
in X: f32[N]
out Y: f32[8]
grid (1)

%0 = full 0 : f32[8]
%1 = for i0 in 0..N step 1 carry (%2 = %0) : f32[8] {
  %3 = load X{i0*8} : f32[8]
)" + body + R"(}
store %1 to Y{0}
)");
  const std::vector<int64_t> dims = {trips};
  return chain_us(p, dims, kSlow, where);
}

TEST(Chain, SumsCarryNothing) {
  const std::string sum = "  %4 = add %2, %3 : f32[8]\n  yield %4\n";
  for (int64_t trips : {1, 7, 1000}) EXPECT_EQ(chain_of_loop(sum, trips), 1024 + 16) << trips;
  EXPECT_EQ(chain_of_loop(sum, 7, Residence::cache), 512 + 16);
  EXPECT_EQ(chain_of_loop(sum, 0), 0);
}

TEST(Chain, WhatALoopCarriesIsWaitedForInEachTrip) {
  const std::string step = "  %4 = add %2, %3 : f32[8]\n  %5 = exp %4 : f32[8]\n  yield %5\n";
  EXPECT_EQ(chain_of_loop(step, 1), 1024 + 16 + 128);
  EXPECT_EQ(chain_of_loop(step, 10), 1024 + 10 * (16 + 128));
  // A sum that is looked at on the way.
  const std::string seen = "  %4 = mul %2, %3 : f32[8]\n  %5 = mul %2, %4 : f32[8]\n  yield %5\n";
  EXPECT_EQ(chain_of_loop(seen, 10), 1024 + 10 * (16 + 16));
}

TEST(Chain, FoldsTakeALogarithmAndLookupsASecondLoad) {
  const Program p = parse(R"(program places
dim N
in X: f32[N]
in ids: i32[N]
out Y: f32[1]
grid (1)

%0 = load ids{0} : i32[64]
%1 = gather X{%0} : f32[64]
%2 = reduce sum %1 axis 0 : f32[1]
store %2 to Y{0}
)");
  const std::vector<int64_t> dims = {64};
  EXPECT_EQ(chain_us(p, dims, kSlow, Residence::memory), 1024 + 1024 + 6 * 16);
}

TEST(Chain, OfTheSideThatABranchTakes) {
  for (const auto& [m, us] : {std::pair{4, 1024 + 128}, {8, 1024 + 16}}) {
    const Program p = parse(R"(program branch
dim M
in X: f32[M]
out Y: f32[1]
grid (1)

%0 = load X{0} : f32[1]
%1 = if M < 5 : f32[1] {
  %2 = exp %0 : f32[1]
  yield %2
} else {
  %3 = add %0, %0 : f32[1]
  yield %3
}
store %1 to Y{0}
)");
    const std::vector<int64_t> dims = {m};
    EXPECT_EQ(chain_us(p, dims, kSlow, Residence::memory), us) << m;
  }
}

TEST(Rates, OfAnH200ByHand) {
  const Rates r = datasheet_rates(gpu_named("h200"));
  EXPECT_EQ(r.of(Unit::dot_half).per_us, 989e6);
  EXPECT_EQ(r.memory.read, 4.8e6);
  const Program p = parse(kGemm);
  const std::vector<int64_t> dims = {4096, 4096, 4096};
  const Limit l = limit(p, dims, r, Residence::memory);
  EXPECT_EQ(l.bound(), Resource::matrix);
  EXPECT_DOUBLE_EQ(l.of(Resource::matrix), 2.0 * 4096 * 4096 * 4096 / 989e6);
  EXPECT_DOUBLE_EQ(l.of(Resource::bandwidth), (3 * 2.0 * 4096 * 4096 + 4 * 4096) / 4.8e6);
  EXPECT_DOUBLE_EQ(l.of(Resource::arithmetic), 4096.0 * 4096 / 67e6);
  EXPECT_DOUBLE_EQ(l.of(Resource::convert), 4096.0 * 4096 / 33.5e6);
  EXPECT_EQ(l.of(Resource::launch), 0.5);
  EXPECT_EQ(l.time_us(), l.of(Resource::matrix));
}

TEST(Rates, OtherModelsCountByTheirParts) {
  GpuMachine m = gpu_named("h200");
  m.name = "NVIDIA H100";
  m.multiprocessors /= 2;
  m.copy_bandwidth /= 4;
  const Rates r = datasheet_rates(m);
  EXPECT_DOUBLE_EQ(r.of(Unit::f32).per_us, 67e6 / 2);
  EXPECT_DOUBLE_EQ(r.memory.copy, 4.8e6 / 4);
  EXPECT_EQ(r.source, "data sheet of H200, in proportion");
  m.arch = "sm_120a";
  TW_EXPECT_ERROR(UserError, "no rates of 'sm_120a' are known", [&] { datasheet_rates(m); });
}

TEST(Rates, NothingReachesMoreThanIsStated) {
  const GpuMachine& m = gpu_named("h200");
  const Rates stated = datasheet_rates(m), reached = *reached_rates(m);
  for (size_t u = 0; u < kUnits; ++u) {
    EXPECT_LE(reached.ops[u].per_us, stated.ops[u].per_us) << name(static_cast<Unit>(u));
    EXPECT_EQ(reached.ops[u].on, stated.ops[u].on);
  }
  for (auto part : {&Rates::memory, &Rates::cache})
    for (auto way : {&Bandwidth::read, &Bandwidth::write, &Bandwidth::copy}) {
      EXPECT_GT(reached.*part.*way, 0);
      EXPECT_LE(reached.*part.*way, stated.*part.*way);
    }
  EXPECT_GE(reached.latency.memory_us, stated.latency.memory_us);
  EXPECT_GE(reached.latency.cache_us, stated.latency.cache_us);
  EXPECT_GE(reached.latency.arithmetic_us, stated.latency.arithmetic_us);
  EXPECT_GE(reached.latency.special_us, stated.latency.special_us);
  EXPECT_GE(reached.latency.matrix_us, stated.latency.matrix_us);
  EXPECT_FALSE(reached_rates(gpu_named("a100")));
}

TEST(Rates, OfCpusByHand) {
  const Rates r = datasheet_rates(machine_named("avx512"), 2);
  EXPECT_DOUBLE_EQ(r.of(Unit::dot_f32).per_us, 2 * 3900.0 * 16 * 2 * 2);
  EXPECT_DOUBLE_EQ(r.of(Unit::f64).per_us, r.of(Unit::f32).per_us / 2);
  EXPECT_DOUBLE_EQ(r.cache.read, 2 * 3900.0 * 2 * 64);
  EXPECT_EQ(r.memory.read, 844.8e3);
  TW_EXPECT_ERROR(UserError, "no rates of 'generic' are known",
                  [] { datasheet_rates(machine_named("generic"), 1); });
}

}  // namespace
}  // namespace tw
