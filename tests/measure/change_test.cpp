#include "tw/measure/change.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "tests/support/expect_error.h"

namespace tw::measure {
namespace {

std::vector<double> noisy(double middle, double noise, int n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> v;
  for (int i = 0; i < n; ++i) v.push_back(middle + noise * normal(random));
  return v;
}

TEST(Change, PairMeansOfAFewByHand) {
  // Means of pairs of 1, 2, 6: 1, 1.5, 2, 3.5, 4, 6.
  EXPECT_EQ(pair_mean_interval(std::vector<double>{1, 2, 6}).median, 2.75);
  const Interval one = pair_mean_interval(std::vector<double>{7});
  EXPECT_EQ(one.low, 7);
  EXPECT_EQ(one.high, 7);
  TW_EXPECT_ERROR(InternalError, "median of no values", [] { pair_mean_interval({}); });
}

TEST(Change, IntervalsOfPairMeansCoverTheTruth) {
  int covered = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Interval i = pair_mean_interval(noisy(1, 0.02, 10, seed));
    covered += i.low <= 1 && 1 <= i.high;
  }
  EXPECT_GE(covered, 364);  // 95 % of 400 is 380, its standard deviation 4.4
  EXPECT_LE(covered, 396);
}

TEST(Change, OutliersMoveItLittle) {
  std::vector<double> v = noisy(1, 0.004, 12, 5);
  const double before = pair_mean_interval(v).median;
  v[3] = 3;
  EXPECT_LT(std::abs(pair_mean_interval(v).median - before), 0.01 / 4);
}

TEST(Change, CountsBeyondOneAndAHalfPercent) {
  const auto verdict = [](double middle, double low, double high) {
    Change c;
    c.ratio = {middle, low, high};
    return c.verdict();
  };
  EXPECT_EQ(verdict(0.97, 0.964, 0.976), Verdict::slower);
  EXPECT_EQ(verdict(0.97, 0.93, 1.01), Verdict::equal);
  EXPECT_EQ(verdict(0.99, 0.988, 0.992), Verdict::equal);
  EXPECT_EQ(verdict(1.03, 1.024, 1.036), Verdict::faster);
}

Job filling() {
  Job job;
  job.task = {"double", {}, 1};
  job.inputs = {{"X", f32, {100}, {}}};
  job.outputs = {{"Y", f32, {100}, {}}};
  job.fill = [](int, const TensorView& to, uint64_t seed) {
    for (int64_t i = 0; i < to.dims[0]; ++i)
      static_cast<float*>(to.data)[i] = static_cast<float>((seed + static_cast<uint64_t>(i)) % 99);
  };
  job.verify = [](const TensorSet& set, uint64_t) {
    const auto* x = static_cast<const float*>(set.inputs[0].data);
    const auto* y = static_cast<const float*>(set.outputs[0].data);
    return y[7] == 2 * x[7] ? 0.0 : HUGE_VAL;
  };
  return job;
}

Change between(int before_ns, int after_ns, const char* kind = "honest") {
  ChangeSettings s;
  s.least_rounds = 3;
  s.most_rounds = 3;
  s.round.worker = TW_WORKER;
  s.round.blocks = 2;
  s.round.slice_s = 0.005;
  s.round.repeats = 100;  // of slices in which the machine did something else
  return change_between(filling(), {"before", "honest", std::to_string(before_ns)},
                        {"after", kind, std::to_string(after_ns), TW_WORKER}, s);
}

TEST(Change, FindsThreePercentAndNothingWhereNothingIs) {
  const Change slower = between(100000, 103000);
  EXPECT_EQ(slower.rounds.size(), 3u);
  EXPECT_EQ(slower.verdict(), Verdict::slower);
  EXPECT_GT(slower.after_us, slower.before_us);
  EXPECT_EQ(between(100000, 100000).verdict(), Verdict::equal);
  EXPECT_EQ(between(103000, 100000).verdict(), Verdict::faster);
}

TEST(Change, ContestantsThatFailAreErrors) {
  TW_EXPECT_ERROR(DeviceError, "contestant 'after' is wrong",
                  [] { between(100000, 100000, "stops"); });
}

}  // namespace
}  // namespace tw::measure
