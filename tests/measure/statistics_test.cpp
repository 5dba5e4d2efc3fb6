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

TEST(Statistics, SameSeedSameInterval) {
  const std::vector<double> v = {1, 5, 2, 8, 3, 9};
  EXPECT_EQ(median_interval(v, 3).low, median_interval(v, 3).low);
}

}  // namespace
}  // namespace tw::measure
