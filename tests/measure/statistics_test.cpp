#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "tw/measure/compare.h"

#include "tests/support/expect_error.h"

namespace tw::measure {
namespace {

Comparison simulated(double slowdown, double noise, int blocks, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Comparison c;
  c.all.resize(2);
  for (int b = 0; b < blocks; ++b) {
    const double drift = std::exp(0.3 * normal(random));  // common to both sides of a block
    c.all[0].block_us.push_back(10 * drift * std::exp(noise * normal(random)));
    c.all[1].block_us.push_back(10 * slowdown * drift * std::exp(noise * normal(random)));
  }
  return c;
}

TEST(Statistics, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(median_interval({3, 1, 2}).median, 2);
  EXPECT_EQ(median_interval({4, 1, 2, 3}).median, 2.5);
  const Interval one = median_interval({7});
  EXPECT_EQ(one.low, 7);
  EXPECT_EQ(one.high, 7);
  TW_EXPECT_ERROR(InternalError, "median of no values", [] { median_interval({}); });
}

TEST(Statistics, IntervalsCoverTheTruth) {
  int covered = 0;
  for (int seed = 0; seed < 300; ++seed) {
    const Interval r = simulated(1.05, 0.02, 15, 100 + seed).ratio(0, 1);
    covered += r.low <= 1.05 && 1.05 <= r.high;
  }
  EXPECT_GE(covered, 270);  // 95 % of 300 is 285, its standard deviation 4
  EXPECT_LE(covered, 299);
}

TEST(Statistics, DriftOfTheMachineCancels) {
  const Interval r = simulated(1.05, 0.005, 15, 1).ratio(0, 1);
  EXPECT_GT(r.low, 1.03);
  EXPECT_LT(r.high, 1.07);
}

TEST(Statistics, VerdictNeedsTwoPercent) {
  EXPECT_EQ(verdict({1.05, 1.03, 1.07}), Verdict::faster);
  EXPECT_EQ(verdict({1.02, 1.01, 1.03}), Verdict::equal);
  EXPECT_EQ(verdict({0.95, 0.93, 0.97}), Verdict::slower);
}

TEST(Statistics, ChancesAreStudents) {
  // Two blocks: one degree of freedom, t = 1 has a quarter above it. Three: t = sqrt(2/3) / ..
  const double e = std::exp(1.0);
  EXPECT_NEAR(chance_of_blocks({1, 1}, {1.02, 1.02 * e}), 0.25, 0x1p-40);
  // Logarithms 0, 1, 2: mean 1, standard error 1 / sqrt(3); (1 - t / sqrt(2 + t^2)) / 2.
  EXPECT_NEAR(chance_of_blocks({1, 1, 1}, {1.02, 1.02 * e, 1.02 * e * e}),
              (1 - std::sqrt(3.0 / 5)) / 2, 0x1p-40);
  EXPECT_NEAR(chance_of_blocks({1, 1, 1}, {1.02 / e, 1.02, 1.02 * e}), 0.5, 0x1p-40);
  EXPECT_EQ(chance_of_blocks({1, 1}, {2, 2}), 0);
  EXPECT_EQ(chance_of_blocks({1, 1}, {1, 1}), 1);
  EXPECT_EQ(chance_of_blocks({1}, {2}), 1);
}

TEST(Statistics, ManyProblemsNeedMore) {
  using Wins = std::vector<bool>;
  EXPECT_EQ(faster_of_many({0.02}), Wins{true});
  EXPECT_EQ(faster_of_many({0.03}), Wins{false});
  EXPECT_EQ(faster_of_many({0.02, 0.5}), (Wins{false, false}));
  EXPECT_EQ(faster_of_many({0.02, 0.001}), (Wins{true, true}));  // what is sure asks no more
  EXPECT_EQ(faster_of_many({}), Wins{});
}

// Of 40 problems, all 2 % faster, some seem faster by more than 2 %, and by themselves would count.
TEST(Statistics, NoWinsWhereThereAreNone) {
  int runs_with_wins = 0, alone = 0, real = 0;
  for (int run = 0; run < 100; ++run) {
    std::vector<double> chances;
    for (int i = 0; i < 40; ++i) {
      const Comparison c = simulated(1.02, 0.02, 15, 1 + 40 * run + i);
      chances.push_back(c.chance(0, 1));
      alone += faster_of_many({chances.back()})[0];
    }
    runs_with_wins += std::ranges::count(faster_of_many(chances), true) > 0;
    chances.back() = simulated(1.08, 0.02, 15, 9000 + run).chance(0, 1);
    real += faster_of_many(chances).back();
  }
  EXPECT_GE(alone, 50);          // 100 of 4000 are expected
  EXPECT_LE(runs_with_wins, 8);  // 2.5 are
  EXPECT_GE(real, 90);
}

TEST(Statistics, SameSeedSameInterval) {
  const std::vector<double> v = {1, 5, 2, 8, 3, 9};
  EXPECT_EQ(median_interval(v, 3).low, median_interval(v, 3).low);
}

}  // namespace
}  // namespace tw::measure
