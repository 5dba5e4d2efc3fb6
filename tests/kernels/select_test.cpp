#include "tw/kernels/select/select.h"

#include <cmath>
#include <gmock/gmock.h>
#include <limits>
#include <random>
#include <set>

#include "tw/lang/lang.h"

#include "tests/kernels/run_kernel.h"

namespace tw::test {
namespace {

using kernels::Problem;
using testing::Each;
using testing::ElementsAre;
using testing::IsNan;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::vector<double>> top_k(int64_t n, int64_t k, const std::vector<double>& x) {
  const Problem p{{{"m", 1}, {"n", n}, {"k", k}}, f32, {}};
  return run_kernel("top_k", p, {tensor(f32, {1, n}, x)});
}

/// Tokens drawn from one row of probabilities, m times.
std::vector<double> draws(const std::vector<double>& p, int64_t k, double top_p, int64_t m,
                          double seed) {
  const auto n = std::ssize(p);
  const Tensor row = tensor(f32, {1, n}, p).expand({m, n});
  return run_program(kernels::sample_rows(k, k < 1024 ? 1024 : 32768),
                     {row, tensor(f32, {1}, {top_p}), tensor(i64, {1}, {seed})}, i64, {m});
}

}  // namespace

TEST(TopK, OrdersNanInfinitiesAndTies) {
  const auto got = top_k(8, 6, {1, -kInf, kNan, 5, kInf, 5, kNan, -1});
  EXPECT_THAT(got[1], ElementsAre(2, 6, 4, 3, 5, 0));
  EXPECT_THAT(got[0], ElementsAre(IsNan(), IsNan(), kInf, 5, 5, 1));
}

TEST(TopK, RowsOfTheLeastValueKeepTheirOwnColumns) {
  EXPECT_THAT(top_k(70, 3, std::vector<double>(70, -kInf))[1], ElementsAre(0, 1, 2));
}

// A list for each of a million rows of one tile: none of it may lie on the stack.
TEST(TopK, TileOfManyRows) {
  constexpr int kRows = 1 << 20;
  Trace k("larger");
  TensorRef X = k.input("X", f32, {kRows, 2}), Y = k.output("Y", f32, {kRows, 1});
  store(Y.tile({0, 0}, {kRows, 1}), top_k(load(X.tile({0, 0}, {kRows, 2})), 1)[0]);
  std::vector<double> x(2 * kRows);
  for (int64_t i = 0; i < std::ssize(x); ++i) x[i] = static_cast<double>(i * 7 % 13);
  const std::vector<double> y =
      run_program(k.finish(), {tensor(f32, {kRows, 2}, x)}, f32, {kRows, 1});
  for (int64_t i = 0; i < kRows; ++i) ASSERT_EQ(y[i], std::max(x[2 * i], x[2 * i + 1])) << i;
}

// The k-th value is infinite, as are more than k.
TEST(SelectCases, SORT_02) {
  std::vector<double> x(10000);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (double& v : x) v = normal(random);
  std::set<int64_t> places;
  while (places.size() < 200) places.insert(static_cast<int64_t>(random() % 10000));
  for (const int64_t at : places) x[at] = kInf;
  const auto got = top_k(10000, 50, x);
  EXPECT_THAT(got[0], Each(kInf));
  EXPECT_THAT(got[1], testing::ElementsAreArray(places.begin(), std::next(places.begin(), 50)));
}

// Two tokens of equal probability at the cut: only the first stays.
TEST(SelectCases, SORT_03) {
  constexpr int64_t kDraws = 100000;
  std::vector<int64_t> count(4);
  for (const double token : draws({0.4, 0.3, 0.3, 0}, 2, 1, kDraws, 1))
    ++count.at(static_cast<size_t>(token));
  EXPECT_EQ(count[2] + count[3], 0);
  EXPECT_LT(std::abs(7 * count[0] - 4 * kDraws), 7 * kDraws / 100);  // within 1 % of all draws
  EXPECT_LT(std::abs(7 * count[1] - 3 * kDraws), 7 * kDraws / 100);
}

// All tokens are candidates, one has all the probability.
TEST(SelectCases, SORT_04) {
  constexpr int64_t kTokens = 32000;
  std::vector<double> p(kTokens, 0);
  p[1] = 1;
  EXPECT_THAT(draws(p, kTokens, 1, 10000, 7), Each(1));
}

TEST(Sample, KeepsTheFirstTokensWhoseSumIsBelowTopP) {
  for (const double token : draws({0.125, 0.5, 0.125, 0.25}, 4, 0.75, 2000, 3))
    EXPECT_TRUE(token == 1 || token == 3) << token;
  EXPECT_THAT(draws({0.25, 0.5, 0.25}, 3, 0, 100, 3), Each(1));
}

}  // namespace tw::test
