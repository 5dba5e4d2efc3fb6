#include <gtest/gtest.h>
#include <numeric>

#include "tests/emit/run_text.h"
#include "tests/support/golden.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

class While : public testing::TestWithParam<std::string> {};

constexpr int64_t kNumbers = 40;

// Collatz: n -> n / 2 or 3 n + 1, until all numbers of the instance are 1. The condition needs what
// the iteration makes of n, and n is an array that the iteration overwrites.
const char* const kCollatz = R"(program collatz
dim N
in X: i32[N]
out Y: i32[N]
grid (cdiv(N, 13))

%0 = load X{pid0*13} pad 1 : i32[13]
%1 = full 0 : i32[13]
%2 = full 1 : i32[1]
%3 = lt %2, %0 : b1[13]
%4 = reduce or %3 axis 0 : b1[1]
%5 = reshape %4 : b1[]
%go.23, %n.24, %steps.25 = while carry (%6 = %5, %7 = %0, %8 = %1) : b1[], i32[13], i32[13] {
  %9 = lt %2, %7 : b1[13]
  %11 = shr %7, %2 : i32[13]
  %12 = full 3 : i32[1]
  %13 = mul %7, %12 : i32[13]
  %14 = add %13, %2 : i32[13]
  %15 = and %7, %2 : i32[13]
  %16 = eq %15, %2 : b1[13]
  %17 = where %16, %14, %11 : i32[13]
  %18 = where %9, %17, %7 : i32[13]
  %19 = cast %9 : i32[13]
  %20 = add %8, %19 : i32[13]
  %21 = lt %2, %18 : b1[13]
  %22 = reduce or %21 axis 0 : b1[1]
  %26 = reshape %22 : b1[]
  yield %26, %18, %20
}
store %steps.25 to Y{pid0*13}
)";

int64_t collatz(int64_t n) {
  int64_t steps = 0;
  for (; n > 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

TEST_P(While, RunsAsLongAsDataSays) {
  Guarded x(i32, {kNumbers}), y(i32, {kNumbers});
  x.fill([](int64_t i) { return i < 14 ? 1 : static_cast<double>(i); });  // one instance does not
  run_text(kCollatz, {x, y}, GetParam());
  EXPECT_EQ(y.damage(), "");
  for (int64_t i = 0; i < kNumbers; ++i) EXPECT_EQ(get(y.view(), i), i < 14 ? 0 : collatz(i)) << i;
}

INSTANTIATE_TEST_SUITE_P(Isas, While, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

TEST(WhileText, ReadsLikeTheProgram) {
  Guarded x(i32, {kNumbers}), y(i32, {kNumbers});
  TW_EXPECT_GOLDEN("collatz.avx2.txt", text_for(kCollatz, {x, y}, "avx2"));
}

// Scalars change at once, in a loop within a loop: the greatest common divisor of 360 and each of
// 1..N.
TEST(WhileText, ScalarsAndNests) {
  const std::string text = R"(program gcd
dim N
in X: i64[2]
out Y: i64[N]
grid (1)

for i0 in 0..N step 1 {
  %0 = index i0 + 1 : i64[]
  %1 = load X[0]{} : i64[]
  %2 = full 0 : i64[]
  %3 = ne %0, %2 : b1[]
  %9, %10, %11 = while carry (%4 = %3, %5 = %1, %6 = %0) : b1[], i64[], i64[] {
    %7 = rem %5, %6 : i64[]
    %8 = ne %7, %2 : b1[]
    yield %8, %6, %7
  }
  store %10 to Y[i0]{}
}
)";
  Guarded x(i64, {2}), y(i64, {30});
  x.fill([](int64_t) { return 360; });
  run_text(text, {x, y}, "generic");
  for (int64_t i = 0; i < 30; ++i) EXPECT_EQ(get(y.view(), i), std::gcd(360, i + 1)) << i;
}

}  // namespace
}  // namespace tw::test
