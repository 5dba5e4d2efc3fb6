// Tiles of which a part is no element that a call needs: tails of loops and grids, and masks.

#include <cmath>
#include <gtest/gtest.h>

#include "tw/ir/print.h"
#include "tw/limit/limit.h"

namespace tw {
namespace {

Work needed(const std::string& text, std::vector<int64_t> dims) {
  return least_work(parse(text), dims);
}

void replace(std::string& text, const std::string& what, const std::string& with) {
  text.replace(text.find(what), what.size(), with);
}

/// Scores of 16 queries against blocks of 16 keys, as attention has them: whole blocks, then those
/// at the edge of what is seen, of which a mask leaves some.
std::string scores(bool causal) {
  std::string text = R"(program scores
dim Sq
dim Skv
in Q: f32[Sq, 8]
in K: f32[Skv, 8]
out O: f32[Sq, 8]
grid (cdiv(Sq, 16))

%0 = load Q{pid0*16, 0} : f32[16,8]
%1 = full 0 : f32[16,16]
%2 = full 0 : f32[16,8]
%3 = full -inf : f32[16,16]
%4 = for i0 in 0..WHOLE step 1 carry (%5 = %2) : f32[16,8] {
  %6 = load K{i0*16, 0} : f32[16,8]
  %7 = transpose %6 perm (1, 0) : f32[8,16]
  %8 = dot ieee %0, %7, %1 : f32[16,16]
  %9 = exp %8 : f32[16,16]
  %10 = dot ieee %9, %6, %5 : f32[16,8]
  yield %10
}
%11 = for i1 in WHOLE..ALL step 1 carry (%12 = %4) : f32[16,8] {
  %13 = load K{i1*16, 0} : f32[16,8]
  %14 = transpose %13 perm (1, 0) : f32[8,16]
  %15 = dot ieee %0, %14, %1 : f32[16,16]
  %16 = iota axis 1 : i64[1,16]
  %17 = index i1*16 : i64[1,1]
  %18 = add %16, %17 : i64[1,16]
  %19 = index LAST : i64[1,1]
  %20 = iota axis 0 : i64[16,1]
  %21 = mul %20, %19 : i64[16,1]
  %22 = index FIRST : i64[1,1]
  %23 = add %21, %22 : i64[16,1]
  %24 = le %18, %23 : b1[16,16]
  %25 = where %24, %15, %3 : f32[16,16]
  %26 = exp %25 : f32[16,16]
  %27 = dot ieee %26, %13, %12 : f32[16,8]
  yield %27
}
store %11 to O{pid0*16, 0}
)";
  const std::string whole = causal ? "pid0" : "floordiv(Skv, 16)";
  for (int i = 0; i < 2; ++i) replace(text, "WHOLE", whole);
  replace(text, "ALL", causal ? "min(pid0 + 1, cdiv(Skv, 16))" : "cdiv(Skv, 16)");
  replace(text, "LAST", causal ? "1" : "0");
  replace(text, "FIRST", causal ? "pid0*16" : "Skv - 1");
  return text;
}

TEST(Tails, OfLoopsOverTilesCountElements) {
  double before = 0;
  for (int64_t skv : {1, 7, 15, 16, 17, 31, 32, 33, 48, 100, 1000, 1001}) {
    for (int64_t sq : {1, 16, 37}) {
      const Work w = needed(scores(false), {sq, skv});
      EXPECT_EQ(w.of(Unit::dot_f32), 2 * 2 * sq * skv * 8) << sq << " " << skv;
      EXPECT_EQ(w.of(Unit::special), sq * skv) << sq << " " << skv;
      EXPECT_EQ(w.of(Unit::integer), 0) << "masks are no work";
      EXPECT_EQ(w.bytes_read, 4 * 8 * (sq + skv));
    }
    const double flops = needed(scores(false), {16, skv}).flops;
    EXPECT_GT(flops, before) << skv;
    before = flops;
  }
}

TEST(Tails, WhatAMaskOfCoordinatesHidesIsNotCounted) {
  for (int64_t s : {1, 15, 16, 17, 40, 64, 333}) {
    const Work w = needed(scores(true), {s, s});
    EXPECT_EQ(w.of(Unit::special), s * (s + 1) / 2) << s;
    EXPECT_EQ(w.of(Unit::dot_f32), 2 * 2 * 8 * s * (s + 1) / 2) << s;
  }
}

// With one tile of all columns there is neither the sum of sums nor its rescaling.
TEST(Tails, WhatIsDoneOnceATileIsLeftOut) {
  for (int64_t n : {1, 31, 32, 33, 100}) {
    const Work w = needed(R"(program sums
dim M
dim N
in X: f32[M, N]
out Y: f32[M, 1]
grid (cdiv(M, 4))

%0 = full 0 : f32[4,1]
%1 = for i0 in 0..cdiv(N, 32) step 1 carry (%2 = %0) : f32[4,1] {
  %3 = load X{pid0*4, i0*32} : f32[4,32]
  %4 = exp %3 : f32[4,32]
  %5 = reduce sum %4 axis 1 : f32[4,1]
  %6 = exp %2 : f32[4,1]
  %7 = add %6, %5 : f32[4,1]
  yield %7
}
store %1 to Y{pid0*4, 0}
)",
                          {5, n});
    EXPECT_EQ(w.of(Unit::special), 5 * n) << n;
    EXPECT_EQ(w.of(Unit::f32), 5 * n) << n;
  }
}

// Each trip is a step of its own: no tile makes them fewer.
TEST(Tails, StepsOfARecurrenceAllCount) {
  const Work w = needed(R"(program steps
dim N
in X: f32[N, 8]
out Y: f32[1, 8]
grid (1)

%0 = full 0 : f32[1,8]
%1 = for i0 in 0..N step 1 carry (%2 = %0) : f32[1,8] {
  %3 = load X{i0, 0} : f32[1,8]
  %4 = add %2, %3 : f32[1,8]
  %5 = tanh %4 : f32[1,8]
  yield %5
}
store %1 to Y{0, 0}
)",
                        {100});
  EXPECT_EQ(w.of(Unit::special), 800);
}

TEST(Tails, GathersOutsideTheirTensorReadPadding) {
  const auto filtered = [](int64_t n) {
    return needed(R"(program filtered
dim N
in X: f32[N]
in F: f32[3]
out Y: f32[N]
grid (cdiv(N, 8))

%0 = iota axis 0 : i64[8]
%1 = full 0 : f32[8]
%2 = for i0 in 0..3 step 1 carry (%3 = %1) : f32[8] {
  %4 = index pid0*8 + i0 - 1 : i64[1]
  %5 = add %0, %4 : i64[8]
  %6 = gather X{%5} pad 0 : f32[8]
  %7 = load F{i0} : f32[1]
  %8 = mul %6, %7 : f32[8]
  %9 = add %3, %8 : f32[8]
  yield %9
}
store %2 to Y{pid0*8}
)",
                  {n});
  };
  for (int64_t n : {1, 7, 8, 9, 100, 100000}) {
    EXPECT_EQ(filtered(n).of(Unit::f32), 2 * (3 * n - 2)) << n;  // of both ends one tap is outside
    EXPECT_EQ(filtered(n).bytes_read, 4 * (n + 3)) << n;
  }
}

TEST(Tails, OfHugeLoopsAreFoundToo) {
  const std::string text = R"(program far
dim N
in X: f32[N]
out Y: f32[N]
grid (1)

for i0 in 0..cdiv(N, 64) step 1 {
  %0 = load X{i0*64} : f32[64]
  %1 = exp %0 : f32[64]
  store %1 to Y{i0*64}
}
)";
  const int64_t n = (int64_t{1} << 32) + 1;
  EXPECT_EQ(needed(text, {n}).of(Unit::special), n);
  EXPECT_EQ(needed(text, {n}).bytes_written, 4 * n);
}

}  // namespace
}  // namespace tw
