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

}  // namespace
}  // namespace tw
