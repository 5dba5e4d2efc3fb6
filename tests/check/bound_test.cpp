#include "tw/check/bound.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace tw::check {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Bound, UlpIsTheDistanceToTheNextValue) {
  for (float x : {1.0f, 1.5f, 3.0f, 1e-30f, 1e-40f, 0.0f, 65504.0f})
    EXPECT_EQ(ulp(f32, x), static_cast<double>(std::nextafter(x, 1e38f)) - x) << x;
  EXPECT_EQ(ulp(f32, -3.0), ulp(f32, 3.0));
  EXPECT_EQ(ulp(bf16, 1.0), std::ldexp(1.0, -7));
  EXPECT_EQ(ulp(f16, 1.0), std::ldexp(1.0, -10));
  EXPECT_EQ(ulp(f16, 0.0), std::ldexp(1.0, -24));
  EXPECT_EQ(ulp(i32, 7.0), 0);
}

TEST(Bound, FollowsTheFormula) {
  const double u = std::ldexp(1.0, -24);
  EXPECT_EQ(bound({.family = Family::gemm, .terms = 64}, 1.0, 10.0), 2 * u + 8 * 8 * u * 10);
  EXPECT_EQ(bound({.family = Family::softmax, .terms = 4}, 1.0, 1.0), 2 * u + 8 * 2 * u + 2 * u);
  EXPECT_EQ(bound({.family = Family::elementwise, .function_ulps = 6}, 1.0, 1.0),
            2 * u + 8 * u + 12 * u);
  EXPECT_EQ(bound({.out = bf16, .terms = 0}, 1.0, 0.0), std::ldexp(1.0, -7));
  EXPECT_EQ(bound({.family = Family::exact}, 1.0, 10.0), 0);
  EXPECT_EQ(bound({.family = Family::reduction, .out = i32, .accumulate = i32}, 1.0, 10.0), 0);
}

TEST(Bound, PrecisionOfProductsAdds) {
  const Accuracy ieee{.family = Family::gemm, .terms = 16};
  for (const Precision p : {Precision::tf32, Precision::tf32x3}) {
    Accuracy a = ieee;
    a.precision = p;
    EXPECT_EQ(bound(a, 1.0, 8.0), bound(ieee, 1.0, 8.0) + 8 * product_error(p).relative);
  }
  EXPECT_EQ(product_error(Precision::tf32x3).relative, 0x1p-19);
  EXPECT_EQ(product_error(Precision::ieee).relative, 0);
}

TEST(Bound, SubnormalProductsRoundToo) {
  const Accuracy sums{.family = Family::reduction, .terms = 4};
  const Accuracy products{.family = Family::gemm, .terms = 4};
  EXPECT_EQ(bound(sums, 0, 0), 0x1p-149);
  EXPECT_EQ(bound(products, 0, 0), 0x1p-149 + 16 * 0x1p-150);
  EXPECT_EQ(bound(products, 0, kInf), kInf) << "a relu of minus infinity is 0";
}

TEST(Bound, KindsOfValueMustAgree) {
  EXPECT_EQ(error_ratio(f32, 1.5, 1.0, 0.25), 2);
  EXPECT_EQ(error_ratio(f32, kNan, kNan, 0), 0);
  EXPECT_EQ(error_ratio(f32, kNan, 1.0, 1.0), kInf);
  EXPECT_EQ(error_ratio(f32, 1.0, kNan, 1.0), kInf);
  EXPECT_EQ(error_ratio(f32, kInf, kInf, 0), 0);
  EXPECT_EQ(error_ratio(f32, -kInf, kInf, 1.0), kInf);
  EXPECT_EQ(error_ratio(f32, 1e30, kInf, 1.0), kInf);
  EXPECT_EQ(error_ratio(f32, kInf, 1e30, 1.0), kInf);
  EXPECT_EQ(error_ratio(f32, kInf, 1e39, 1.0), 0);
  EXPECT_EQ(error_ratio(f32, -kInf, 1e39, 1.0), kInf);
  EXPECT_EQ(error_ratio(f16, kInf, 65519.0, 1.0), 0);
  EXPECT_EQ(error_ratio(f16, kInf, 65504.0, 1.0), kInf);
  EXPECT_EQ(error_ratio(e4m3, kNan, 500.0, 1.0), 0);
  EXPECT_EQ(error_ratio(e4m3, kNan, 448.0, 1.0), kInf);
}

TEST(Bound, ExactFamiliesAllowNoDifference) {
  EXPECT_EQ(error_ratio(f32, 1.0, 1.0, 0), 0);
  EXPECT_EQ(error_ratio(f32, 1.0, std::nextafter(1.0, 2.0), 0), kInf);
  EXPECT_EQ(error_ratio(f32, -0.0, 0.0, 0), kInf);
  EXPECT_EQ(error_ratio(f32, -0.0, -0.0, 0), 0);
}

TEST(Bound, AccumulatesNarrowFloatsInF32) {
  EXPECT_EQ(accumulator_of(bf16), f32);
  EXPECT_EQ(accumulator_of(f32), f32);
  EXPECT_EQ(accumulator_of(f64), f64);
  EXPECT_EQ(accumulator_of(i32), i32);
}

}  // namespace
}  // namespace tw::check
