#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "tests/interp/run_text.h"
#include "tests/support/expect_error.h"

namespace tw::test {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Equal values with equal signs of zero; NaN equals NaN.
MATCHER_P(Same, want, "") {
  if (arg.size() != want.size()) return false;
  for (size_t i = 0; i < arg.size(); ++i) {
    const double x = arg[i], y = want[i];
    if (std::isnan(x) != std::isnan(y)) return false;
    if (!std::isnan(x) && (x != y || std::signbit(x) != std::signbit(y))) return false;
  }
  return true;
}

using Values = std::vector<double>;

}  // namespace

const char* const kCountdown = R"(program countdown
in x: f32[3]
inout y: f32[3]
grid (1)

%0 = load x{0} : f32[3]
%1 = full CONDITION : b1[]
%10, %11 = while carry (%2 = %1, %3 = %0) : b1[], f32[3] {
  %4 = full 1 : f32[1]
  %5 = sub %3, %4 : f32[3]
  %6 = full LAST : f32[1]
  %7 = lt %6, %5 : b1[3]
  %8 = reduce or %7 axis 0 : b1[1]
  %9 = reshape %8 : b1[]
  store %5 to y{0}
  yield %9, %5
}
)";

Values countdown(const char* condition, const char* last, const InterpretOptions& options = {},
                 Interpretation* report = nullptr) {
  std::string text = kCountdown;
  text.replace(text.find("CONDITION"), 9, condition);
  text.replace(text.find("LAST"), 4, last);
  return values(run_text(text, {tensor(f32, {3}, {5, 7, 2})}, {{f32, {3}}}, options, report)[0]);
}

TEST(Exact, AWhileRunsUntilItsConditionIsFalse) {
  EXPECT_EQ(countdown("1", "0.5"), (Values{-2, 0, -5}));
  EXPECT_EQ(countdown("0", "0.5"), (Values{0, 0, 0}));
}

TEST(Exact, AWhileThatDoesNotEndIsAnError) {
  TW_EXPECT_ERROR(UserError,
                  "test.tw:8: error: while loops made more than 1000 iterations together",
                  [] { countdown("1", "-inf", {.most_iterations = 1000}); });
  EXPECT_EQ(countdown("1", "0.5", {.most_iterations = 7}), (Values{-2, 0, -5}));
}

// exp2(0.5)^2 - 1 may lie on either side of 1: whether the loop goes on is open.
TEST(Bounded, AWhileWhoseConditionIsOpenLosesWhatItCarriesAndWrites) {
  Interpretation report;
  countdown("1", "0.5", {.mode = InterpretMode::bounded}, &report);
  EXPECT_EQ(report.undecided(), 0);
  const std::string text = R"(program open
inout y: f32[2]
inout z: f32[2]
inout w: f32[2]
grid (1)

%0 = full 0.5 : f32[]
%1 = exp2 %0 : f32[]
%2 = mul %1, %1 : f32[]
%3 = full 2 : f32[]
%4 = lt %2, %3 : b1[]
%5 = full 3 : f32[2]
%9, %10 = while carry (%6 = %4, %7 = %5) : b1[], f32[2] {
  %8 = full 0 : b1[]
  store %7 to y{0}
  yield %8, %7
}
store %10 to z{0}
store %5 to w{0}
)";
  run_text(text, {}, {{f32, {2}}, {f32, {2}}, {f32, {2}}}, {.mode = InterpretMode::bounded},
           &report);
  const auto open = [&](size_t k) { return report.outputs[k][0].undecided; };
  EXPECT_TRUE(open(0));
  EXPECT_TRUE(open(1));
  EXPECT_FALSE(open(2));
}

TEST(Exact, AddsInItsOwnDtype) {
  EXPECT_THAT(run_op("add %0, %1", f32, f32, {0x1p24, 1, kInf, -0.0}, {1, 0x1p-24, -kInf, -0.0}),
              Same(Values{0x1p24, 1, kNan, -0.0}));
  EXPECT_THAT(run_op("add %0, %1", bf16, bf16, {256, 1}, {1, 0.00390625}), Same(Values{256, 1}));
  EXPECT_THAT(run_op("add %0, %1", f16, f16, {65504, 2048}, {16, 1}), Same(Values{kInf, 2048}));
  EXPECT_THAT(run_op("add %0, %1", f64, f64, {0x1p53, 0.1}, {1, 0.2}),
              Same(Values{0x1p53, 0.1 + 0.2}));
}

TEST(Exact, IntegersWrap) {
  EXPECT_THAT(run_op("add %0, %1", i8, i8, {127, -128}, {1, -1}), Same(Values{-128, 127}));
  EXPECT_THAT(run_op("mul %0, %1", u8, u8, {200, 16}, {2, 16}), Same(Values{144, 0}));
  EXPECT_THAT(run_op("sub %0, %1", u32, u32, {0}, {1}), Same(Values{4294967295.0}));
  EXPECT_THAT(run_op("neg %0", i32, i32, {-2147483648.0, 5}), Same(Values{-2147483648.0, -5}));
  EXPECT_THAT(run_op("abs %0", i8, i8, {-128, -3}), Same(Values{-128, 3}));
}

TEST(Exact, DividesIntegersTowardZeroAndByZeroToZero) {
  EXPECT_THAT(run_op("div %0, %1", i32, i32, {7, -7, 7, -2147483648.0}, {2, 2, 0, -1}),
              Same(Values{3, -3, 0, -2147483648.0}));
  EXPECT_THAT(run_op("rem %0, %1", i32, i32, {7, -7, 7, -2147483648.0}, {4, 4, 0, -1}),
              Same(Values{3, -3, 0, 0}));
  EXPECT_THAT(run_op("div %0, %1", u8, u8, {200}, {3}), Same(Values{66}));
}

TEST(Exact, DividesFloats) {
  EXPECT_THAT(run_op("div %0, %1", f32, f32, {1, -1, 0, 1}, {0, 0, 0, 3}),
              Same(Values{kInf, -kInf, kNan, 1.0f / 3.0f}));
}

TEST(Exact, MinAndMaxPropagateNanAndOrderZeros) {
  const Values a{kNan, 1, -0.0, 0.0, 3}, b{1, kNan, 0.0, -0.0, 5};
  for (DType t : {f16, bf16, f32, f64}) {
    EXPECT_THAT(run_op("max %0, %1", t, t, a, b), Same(Values{kNan, kNan, 0.0, 0.0, 5}));
    EXPECT_THAT(run_op("min %0, %1", t, t, a, b), Same(Values{kNan, kNan, -0.0, -0.0, 3}));
    EXPECT_THAT(run_op("max_num %0, %1", t, t, a, b), Same(Values{1, 1, 0.0, 0.0, 5}));
    EXPECT_THAT(run_op("min_num %0, %1", t, t, a, b), Same(Values{1, 1, -0.0, -0.0, 3}));
  }
  EXPECT_THAT(run_op("max %0, %1", u8, u8, {200}, {3}), Same(Values{200}));
  EXPECT_THAT(run_op("max %0, %1", i8, i8, {-56}, {3}), Same(Values{3}));
}

TEST(Exact, ShiftsOutsideTheWidth) {
  EXPECT_THAT(run_op("shl %0, %1", i8, i8, {1, 1, 1, 1}, {7, 8, -1, 0}),
              Same(Values{-128, 0, 0, 1}));
  EXPECT_THAT(run_op("shr %0, %1", i8, i8, {-128, -128, -128, 64}, {7, 8, -1, 8}),
              Same(Values{-1, -1, -1, 0}));
  EXPECT_THAT(run_op("shr %0, %1", u8, u8, {128, 128}, {7, 8}), Same(Values{1, 0}));
  EXPECT_THAT(run_op("shl %0, %1", u32, u32, {1}, {31}), Same(Values{2147483648.0}));
}

TEST(Exact, BitsAndMasks) {
  EXPECT_THAT(run_op("and %0, %1", u8, u8, {12}, {10}), Same(Values{8}));
  EXPECT_THAT(run_op("or %0, %1", i8, i8, {-128}, {1}), Same(Values{-127}));
  EXPECT_THAT(run_op("xor %0, %1", u8, u8, {12}, {10}), Same(Values{6}));
  EXPECT_THAT(run_op("not %0", u8, u8, {0}), Same(Values{255}));
  EXPECT_THAT(run_op("not %0", b1, b1, {0, 1}), Same(Values{1, 0}));
  EXPECT_THAT(run_op("xor %0, %1", b1, b1, {0, 1}, {1, 1}), Same(Values{1, 0}));
}

TEST(Exact, Compares) {
  const Values a{1, 2, kNan, 0.0}, b{2, 2, kNan, -0.0};
  EXPECT_THAT(run_op("lt %0, %1", f32, b1, a, b), Same(Values{1, 0, 0, 0}));
  EXPECT_THAT(run_op("le %0, %1", f32, b1, a, b), Same(Values{1, 1, 0, 1}));
  EXPECT_THAT(run_op("eq %0, %1", f32, b1, a, b), Same(Values{0, 1, 0, 1}));
  EXPECT_THAT(run_op("ne %0, %1", f32, b1, a, b), Same(Values{1, 0, 1, 0}));
  EXPECT_THAT(run_op("lt %0, %1", u8, b1, {128}, {127}), Same(Values{0}));
}

TEST(Exact, RoundsToIntegers) {
  const Values a{0.5, 1.5, -0.5, 2.5, -2.5, kInf, kNan, -0.0};
  EXPECT_THAT(run_op("round %0", f32, f32, a), Same(Values{0, 2, -0.0, 2, -2, kInf, kNan, -0.0}));
  EXPECT_THAT(run_op("floor %0", f32, f32, a), Same(Values{0, 1, -1, 2, -3, kInf, kNan, -0.0}));
  EXPECT_THAT(run_op("ceil %0", f32, f32, a), Same(Values{1, 2, -0.0, 3, -2, kInf, kNan, -0.0}));
}

TEST(Exact, FunctionsAtTheirEdges) {
  EXPECT_THAT(run_op("sqrt %0", f32, f32, {4, -1, -0.0, kInf}), Same(Values{2, kNan, -0.0, kInf}));
  EXPECT_THAT(run_op("rsqrt %0", f32, f32, {4, -1, 0.0, kInf}), Same(Values{0.5, kNan, kInf, 0}));
  EXPECT_THAT(run_op("exp %0", f32, f32, {0, -kInf, kInf, kNan, 89}),
              Same(Values{1, 0, kInf, kNan, kInf}));
  EXPECT_THAT(run_op("exp2 %0", f32, f32, {3, -149, -160}), Same(Values{8, 0x1p-149, 0}));
  EXPECT_THAT(run_op("log %0", f32, f32, {1, 0, -1, kInf}), Same(Values{0, -kInf, kNan, kInf}));
  EXPECT_THAT(run_op("sin %0", f32, f32, {-0.0, kInf, -kInf}), Same(Values{-0.0, kNan, kNan}));
  EXPECT_THAT(run_op("cos %0", f32, f32, {-0.0, kInf, -kInf}), Same(Values{1, kNan, kNan}));
  for (const char* op : {"tanh %0", "tanh_fast %0", "erf %0", "erf_fast %0"})
    EXPECT_THAT(run_op(op, f32, f32, {-0.0, kInf, -kInf}), Same(Values{-0.0, 1, -1})) << op;
}

TEST(Exact, Casts) {
  EXPECT_THAT(run_op("cast %0", f32, i8, {200, -200, 3.9, -3.9, kNan, kInf}),
              Same(Values{127, -128, 3, -3, 0, 127}));
  EXPECT_THAT(run_op("cast %0", f32, u8, {-1, 300}), Same(Values{0, 255}));
  EXPECT_THAT(run_op("cast %0", f32, b1, {0, -0.0, 0.5, kNan}), Same(Values{0, 0, 1, 1}));
  EXPECT_THAT(run_op("cast %0", i32, i8, {130, -130}), Same(Values{-126, 126}));
  EXPECT_THAT(run_op("cast %0", i32, b1, {256, 0}), Same(Values{1, 0}));
  EXPECT_THAT(run_op("cast %0", f32, e4m3, {448, 464, 465, kInf}),
              Same(Values{448, 448, kNan, kNan}));
  EXPECT_THAT(run_op("cast %0 saturate", f32, e4m3, {1000, -kInf, kNan}),
              Same(Values{448, -448, kNan}));
  EXPECT_THAT(run_op("cast %0 RZ", f32, bf16, {1.00390625, -1.00390625}), Same(Values{1, -1}));
  EXPECT_THAT(run_op("cast %0 RU", f32, bf16, {1.001, -1.001}), Same(Values{1.0078125, -1}));
  // Once, not first to f32 and then to bf16: that would lose the last digit and then tie.
  EXPECT_THAT(run_op("cast %0", i32, bf16, {16842753}), Same(Values{16908288}));
}

TEST(Exact, CastsIntegersPastTheDigitsOfADouble) {
  const Scalar tie_and_a_bit = Scalar::of_int((int64_t{1} << 53) + (int64_t{1} << 29) + 1);
  EXPECT_EQ(exact_cast(i64, f32, {}, 0, tie_and_a_bit).f, 0x1p53 + 0x1p30);
  EXPECT_EQ(exact_cast(i64, f64, {}, 0, tie_and_a_bit).f, 0x1p53 + 0x1p29);
  EXPECT_EQ(exact_cast(u64, f32, {}, 0, Scalar::of_int(-1)).f, 0x1p64);
  EXPECT_EQ(exact_cast(i64, f32, {}, 0, Scalar::of_int(-1)).f, -1);
}

TEST(Exact, StochasticRoundingTakesWordsByElement) {
  const Values a(64, 1 + 0x1p-9);  // halfway between neighbours of bf16
  const Values r = run_op("cast %0 SR seed 7", f32, bf16, a);
  for (uint64_t i = 0; i < r.size(); ++i) {
    const uint32_t word = philox(7, 0, i).word[0];
    EXPECT_EQ(r[i], decode(bf16, encode(bf16, a[i], Rounding::SR, false, word)));
  }
  EXPECT_NE(run_op("cast %0 SR seed 8", f32, bf16, a), r);
}

TEST(Exact, LookupsGive0PastTheTable) {
  EXPECT_THAT(run_op("lookup %0 in (-1.5, inf, 0.1)", i8, f16, {0, 1, 2, 3, -1, 127, -128}),
              Same(Values{-1.5, kInf, decode(f16, encode(f16, 0.1)), 0, 0, 0, 0}));
  EXPECT_THAT(run_op("lookup %0 in (5, 6)", u64, i32, {1, 0x1p63, 0x1p32, 0}),
              Same(Values{6, 0, 0, 5}));
}

TEST(Exact, Bitcasts) {
  EXPECT_THAT(run_op("bitcast %0", f32, u32, {1, -0.0}), Same(Values{1065353216.0, 2147483648.0}));
  EXPECT_THAT(run_op("bitcast %0", u16, bf16, {0x3f80, 0xff80}), Same(Values{1, -kInf}));
}

TEST(Exact, ScansFoldInTheOrderOfTheAxis) {
  EXPECT_THAT(run_op("scan sum %0 axis 0", i8, i8, {100, 27, 1, -128}),
              Same(Values{100, 127, -128, 0}));
  EXPECT_THAT(run_op("scan reverse max %0 axis 0", f32, f32, {1, kNan, 3, -0.0, -1}),
              Same(Values{kNan, kNan, 3, -0.0, -1}));
  // Each prefix is rounded once, from f32.
  EXPECT_THAT(run_op("scan sum %0 axis 0", bf16, bf16, {256, 1, 1, 1, 1}),
              Same(Values{256, 256, 258, 260, 260}));
}

TEST(Exact, NarrowFloatsSumInF32) {
  // In f16 one by one, 2048 + 1 would stay 2048.
  const std::string text = R"(program s
in a: f16[1, 9]
out c: f16[1, 1]
grid (1)

%0 = load a{0, 0} : f16[1,9]
%1 = reduce sum %0 axis 1 : f16[1,1]
store %1 to c{0, 0}
)";
  const Tensor a = tensor(f16, {1, 9}, {2048, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(get(run_text(text, {a}, {{f16, {1, 1}}})[0], 0), 2056);
}

}  // namespace tw::test
