#include <gtest/gtest.h>

#include "tw/math/facts.h"

#include "tests/math/symbols.h"

namespace tw {
namespace {

using test::dim, test::loop, test::pid, test::text;

// A grid of tiles of 64 over M, and a loop of blocks of 16 over K.
class Proofs : public testing::Test {
 protected:
  const Expr M = dim(0), N = dim(1), K = dim(2), pid0 = pid(0), pid1 = pid(1), i0 = loop(0);

  void tile_grid(int64_t multiple_of) {
    facts[M.symbol()] = {.multiple_of = multiple_of};
    facts[pid0.symbol()] = {.below = cdiv(M, 64)};
    facts[i0.symbol()] = {.from = Expr(0), .below = cdiv(K, 16)};
  }
  std::string simple(const Expr& e) const { return text(simplify(e, facts)); }

  Facts facts;
};

TEST_F(Proofs, ATileOfAMultipleLiesInside) {
  tile_grid(64);
  EXPECT_TRUE(prove_le(pid0 * 64 + 63, M - 1, facts));
  EXPECT_TRUE(prove_le(pid0 * 64 + 64, M, facts));
  EXPECT_FALSE(prove_le(pid0 * 64 + 64, M - 1, facts));
}

TEST_F(Proofs, ATileOfAnythingMayStickOut) {
  tile_grid(1);
  EXPECT_FALSE(prove_le(pid0 * 64 + 63, M - 1, facts));
  EXPECT_TRUE(prove_le(pid0 * 64, M - 1, facts));
}

TEST_F(Proofs, AHalfMultipleIsNotEnough) {
  tile_grid(32);
  EXPECT_FALSE(prove_le(pid0 * 64 + 63, M - 1, facts));
  EXPECT_TRUE(prove_le(pid0 * 64 + 31, M - 1, facts));
}

TEST_F(Proofs, AWindowAtMostTheRestLiesInside) {
  const Expr length = min(M - pid0 * 64, 64);
  tile_grid(1);
  EXPECT_TRUE(prove_le(pid0 * 64 + length, M, facts));
  EXPECT_TRUE(prove_le(1, length, facts));
}

TEST_F(Proofs, ARowMajorOffsetLiesInside) {
  facts[pid0.symbol()] = {.below = M};
  facts[i0.symbol()] = {.from = Expr(0), .below = N};
  EXPECT_TRUE(prove_le(pid0 * N + i0, M * N - 1, facts));
  EXPECT_FALSE(prove_le(pid0 * N + i0 + 1, M * N - 1, facts));
}

TEST_F(Proofs, ACausalLoopStaysInTheKeys) {
  const Expr last = min((pid0 + 1) * 64, N);
  facts[i0.symbol()] = {.from = Expr(0), .below = cdiv(last, 32)};
  EXPECT_TRUE(prove_le(i0 * 32, N - 1, facts));
  EXPECT_TRUE(prove_le(i0 * 32, pid0 * 64 + 63, facts));
  EXPECT_FALSE(prove_le(i0 * 32 + 31, N - 1, facts));
}

TEST_F(Proofs, ALoopMayStartAtAnotherCounter) {
  const Expr i1 = loop(1);
  facts[i0.symbol()] = {.from = Expr(0), .below = N};
  facts[i1.symbol()] = {.from = i0 * 4, .below = i0 * 4 + 4};
  EXPECT_TRUE(prove_le(i1, N * 4 - 1, facts));
  EXPECT_TRUE(prove_le(0, i1, facts));
}

TEST_F(Proofs, ALoopInStepsStaysInside) {
  facts[K.symbol()] = {.multiple_of = 32};
  facts[i0.symbol()] = {.multiple_of = 16, .from = Expr(0), .below = K};
  EXPECT_TRUE(prove_le(i0 + 15, K - 1, facts));
  EXPECT_TRUE(prove_le(i0 * N + 15 * N, K * N, facts));
  EXPECT_FALSE(prove_le(i0 + 16, K - 1, facts));
  EXPECT_EQ(simple(min(K - i0, 16)), "16");
}

TEST_F(Proofs, QuotientAndRemainderOfAFlatIndex) {
  facts[N.symbol()] = {.range = {1, Interval::kMax}};
  facts[pid0.symbol()] = {.below = M * N};
  EXPECT_TRUE(prove_le(floordiv(pid0, N), M - 1, facts));
  EXPECT_TRUE(prove_le(mod(pid0, N), N - 1, facts));
  EXPECT_EQ(simple(floordiv(pid0, N) * N + mod(pid0, N)), "p0");
}

TEST_F(Proofs, DivisorsOfOffsets) {
  tile_grid(64);
  EXPECT_EQ(divisor(pid0 * 64 + i0 * 16, facts), 16);
  EXPECT_EQ(divisor(M * 2 + 128, facts), 128);
  EXPECT_EQ(divisor(M * K + 32, facts), 32);
  EXPECT_EQ(divisor(floordiv(M, 16), facts), 4);
  EXPECT_EQ(divisor(mod(M, 96), facts), 32);
  EXPECT_EQ(divisor(mod(M, 32), facts), 0);
  EXPECT_EQ(divisor(min(M, Expr(96)), facts), 32);
  EXPECT_EQ(divisor(K, facts), 1);
  EXPECT_EQ(divisor(0, facts), 0);
}

TEST_F(Proofs, SimplifiesWhatTilesMake) {
  tile_grid(64);
  const Expr c = loop(7);
  facts[c.symbol()] = {.range = {0, 63}};
  EXPECT_EQ(simple(floordiv(i0 * 64, 64)), "i0");
  EXPECT_EQ(simple(min(M, M + 64)), "d0");
  EXPECT_EQ(simple(mod(i0 * 64 + c, 64)), "i7");
  EXPECT_EQ(simple(floordiv(i0 * 64 + c, 64)), "i0");
  EXPECT_EQ(simple(floordiv(i0 * 128 + c, 64)), "i0*2");
  EXPECT_EQ(simple(floordiv(i0 * 64 + c, 128)), "floordiv(i0, 2)");
  EXPECT_EQ(simple(mod(i0 * 64 + c, 128)), "i7 + mod(i0, 2)*64");
  EXPECT_EQ(simple(cdiv(M, 64) * 64), "d0");
  EXPECT_EQ(simple(mod(M, 64)), "0");
  EXPECT_EQ(simple(cdiv(M, 64)), "floordiv(d0, 64)");
  EXPECT_EQ(simple(min(M - pid0 * 64, 64)), "64");
  EXPECT_EQ(simple(cdiv(cdiv(N, 4), 16)), "cdiv(d1, 64)");
  EXPECT_EQ(simple((pid0 * 64 + i0) * K - pid0 * 64 * K), "d2*i0");
}

TEST_F(Proofs, BoundsFollowSizes) {
  tile_grid(64);
  facts[M.symbol()].range = {64, 1024};
  EXPECT_EQ(bounds(pid0, facts), (Interval{0, 15}));
  EXPECT_EQ(bounds(pid0 * 64 + 63, facts), (Interval{63, 1023}));
  EXPECT_EQ(bounds(M - M, facts), (Interval{0, 0}));
  EXPECT_EQ(bounds(N - 5, facts), (Interval{-5, Interval::kMax}));
  EXPECT_EQ(bounds(mod(M, 96), facts), (Interval{0, 64}));
  EXPECT_EQ(bounds(floordiv(M, N), facts), (Interval{0, 1024}));
}

}  // namespace
}  // namespace tw
