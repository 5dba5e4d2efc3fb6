#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "tests/interp/run_text.h"
#include "tests/support/product_text.h"
#include "tests/support/random.h"

namespace tw::test {

namespace {

std::vector<double> random_values(uint64_t seed, int64_t n) {
  Random r(seed);
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(static_cast<float>(r.normal()));
  return v;
}

const std::string kGemm = product_text({.bm = 4, .bn = 8, .bk = 3});

const char* const kSoftmax = R"(program softmax
dim M
dim N
in X: f32[M, N]
out Y: f32[M, N]
grid (cdiv(M, 2))

%0 = full -inf : f32[2,1]
%4 = for i0 in 0..cdiv(N, 5) step 1 carry (%1 = %0) : f32[2,1] {
  %2 = load X{pid0*2, i0*5} pad -inf : f32[2,5]
  %3 = reduce max %2 axis 1 : f32[2,1]
  %30 = max %1, %3 : f32[2,1]
  yield %30
}
%5 = full 0 : f32[2,1]
%11 = for i1 in 0..cdiv(N, 5) step 1 carry (%6 = %5) : f32[2,1] {
  %7 = load X{pid0*2, i1*5} pad -inf : f32[2,5]
  %8 = sub %7, %4 : f32[2,5]
  %9 = exp %8 : f32[2,5]
  %10 = reduce sum %9 axis 1 : f32[2,1]
  %31 = add %6, %10 : f32[2,1]
  yield %31
}
for i2 in 0..cdiv(N, 5) step 1 {
  %12 = load X{pid0*2, i2*5} : f32[2,5]
  %13 = sub %12, %4 : f32[2,5]
  %14 = exp %13 : f32[2,5]
  %15 = div %14, %11 : f32[2,5]
  store %15 to Y{pid0*2, i2*5}
}
)";

const char* const kArgmax = R"(program argmax
dim M
in X: f32[M, 11]
out Y: i32[M, 1]
grid (M)

%0 = load X{pid0, 0} : f32[1,11]
%1 = iota axis 1 : i32[1,11]
%2, %3 = reduce custom %0, %1 axis 1 : f32[1,1], i32[1,1] (%4, %5, %6, %7) {
  %8 = lt %6, %4 : b1[]
  %9 = ne %4, %4 : b1[]
  %10 = ne %6, %6 : b1[]
  %11 = not %10 : b1[]
  %12 = and %9, %11 : b1[]
  %13 = or %8, %12 : b1[]
  %14 = eq %4, %6 : b1[]
  %15 = and %9, %10 : b1[]
  %16 = or %14, %15 : b1[]
  %17 = lt %5, %7 : b1[]
  %18 = and %16, %17 : b1[]
  %19 = or %13, %18 : b1[]
  %20 = where %19, %4, %6 : f32[]
  %21 = where %19, %5, %7 : i32[]
  yield %20, %21
}
store %3 to Y{pid0, 0}
)";

const char* const kLayernorm = R"(program layernorm
dim M
in X: f32[M, 12]
out Y: f32[M, 12]
grid (M)

%0 = load X{pid0, 0} : f32[1,12]
%1 = reduce sum %0 axis 1 : f32[1,1]
%2 = full 12 : f32[1,1]
%3 = div %1, %2 : f32[1,1]
%4 = sub %0, %3 : f32[1,12]
%5 = mul %4, %4 : f32[1,12]
%6 = reduce sum %5 axis 1 : f32[1,1]
%7 = div %6, %2 : f32[1,1]
%8 = full 0.001 : f32[1,1]
%9 = add %7, %8 : f32[1,1]
%10 = rsqrt %9 : f32[1,1]
%11 = mul %4, %10 : f32[1,12]
store %11 to Y{pid0, 0}
)";

/// Every element of a bounded run: decided, within its bound of `want`, and the bound tight enough
/// to say something.
void expect_within(const Interpretation& r, const std::vector<double>& want, double loosest) {
  ASSERT_EQ(r.outputs[0].size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const Scalar& s = r.outputs[0][i];
    EXPECT_FALSE(s.undecided);
    EXPECT_LE(std::fabs(s.f - want[i]), s.bound) << "element " << i;
    EXPECT_LE(s.bound, loosest) << "element " << i;
  }
}

}  // namespace

TEST(Reference, GemmOfOddShape) {
  const int64_t m = 7, n = 13, k = 10;
  const auto a = random_values(1, m * k), b = random_values(2, k * n);
  std::vector<double> want(static_cast<size_t>(m * n), 0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t q = 0; q < k; ++q)
        want[static_cast<size_t>(i * n + j)] +=
            a[static_cast<size_t>(i * k + q)] * b[static_cast<size_t>(q * n + j)];
  Interpretation r;
  const std::vector<Tensor> in{tensor(f32, {m, k}, a), tensor(f32, {k, n}, b)};
  run_text(kGemm, in, {{f32, {m, n}}}, {InterpretMode::bounded, {}}, &r);
  expect_within(r, want, 1e-4);
  const auto exact = values(run_text(kGemm, in, {{f32, {m, n}}})[0]);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(exact[i], want[i], r.outputs[0][i].bound);
}

TEST(Reference, GemmOfIntegersIsExact) {
  const std::vector<Tensor> in{tensor(f32, {4, 6}, std::vector<double>(24, 3)),
                               tensor(f32, {6, 8}, std::vector<double>(48, -5))};
  Interpretation r;
  run_text(kGemm, in, {{f32, {4, 8}}}, {InterpretMode::bounded, {}}, &r);
  for (const Scalar& s : r.outputs[0]) {
    EXPECT_EQ(s.f, -90);
    EXPECT_EQ(s.bound, 0);
  }
}

TEST(Reference, GemmWithoutTermsGivesZeros) {
  Interpretation r;
  run_text(kGemm, {host_tensor(f32, {3, 0}), host_tensor(f32, {0, 5})}, {{f32, {3, 5}}},
           {InterpretMode::bounded, {}}, &r);
  for (const Scalar& s : r.outputs[0]) EXPECT_EQ(s.f, 0);
}

TEST(Reference, Softmax) {
  const int64_t m = 3, n = 13;
  const auto x = random_values(3, m * n);
  std::vector<double> want;
  for (int64_t i = 0; i < m; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += std::exp(x[static_cast<size_t>(i * n + j)]);
    for (int64_t j = 0; j < n; ++j)
      want.push_back(std::exp(x[static_cast<size_t>(i * n + j)]) / sum);
  }
  Interpretation r;
  run_text(kSoftmax, {tensor(f32, {m, n}, x)}, {{f32, {m, n}}}, {InterpretMode::bounded, {}}, &r);
  expect_within(r, want, 1e-5);
}

TEST(Reference, SoftmaxOfOnlyMinusInfinityIsNan) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto y =
      values(run_text(kSoftmax, {tensor(f32, {1, 3}, {-inf, -inf, -inf})}, {{f32, {1, 3}}})[0]);
  for (double v : y) EXPECT_TRUE(std::isnan(v));
}

TEST(Reference, ArgmaxTakesTheLowestOfEqualOnesAndNanAsLargest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> x{1, 5, 2, 5, 0, 0,   0, 0, 0, 0,   0,   // ties
                              1, 5, 2, 5, 0, 0,   0, 0, 0, nan, 0,   // a NaN
                              1, 5, 2, 5, 0, nan, 0, 0, 0, nan, 0};  // two NaNs
  const auto y = values(run_text(kArgmax, {tensor(f32, {3, 11}, x)}, {{i32, {3, 1}}})[0]);
  EXPECT_EQ(y, (std::vector<double>{1, 9, 5}));
}

TEST(Reference, Layernorm) {
  const int64_t m = 2, n = 12;
  const auto x = random_values(4, m * n);
  std::vector<double> want;
  for (int64_t i = 0; i < m; ++i) {
    double mean = 0, var = 0;
    for (int64_t j = 0; j < n; ++j) mean += x[static_cast<size_t>(i * n + j)] / n;
    for (int64_t j = 0; j < n; ++j)
      var += std::pow(x[static_cast<size_t>(i * n + j)] - mean, 2) / n;
    for (int64_t j = 0; j < n; ++j)
      want.push_back((x[static_cast<size_t>(i * n + j)] - mean) / std::sqrt(var + 0.001f));
  }
  Interpretation r;
  run_text(kLayernorm, {tensor(f32, {m, n}, x)}, {{f32, {m, n}}}, {InterpretMode::bounded, {}}, &r);
  expect_within(r, want, 1e-4);
}

}  // namespace tw::test
