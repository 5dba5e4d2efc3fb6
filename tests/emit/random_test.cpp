#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tw/num/codec.h"

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

class Random : public testing::TestWithParam<std::string> {};

/// One key, a key for each row, for each column, for each element; counters of any size.
TEST_P(Random, EveryShapeOfKey) {
  constexpr int64_t kRows = 3, kCols = 37;
  for (const auto& [m, n] : {std::pair{1, 1}, {3, 1}, {1, 37}, {3, 37}}) {
    const std::string ir = fmt::format(R"(program draw
in C: i64[3, 37]
in S: i64[{0}, {1}]
out Y: u32[3, 37]
grid (1)

%0 = load C{{0, 0}} : i64[3,37]
%1 = load S{{0, 0}} : i64[{0},{1}]
%2 = full 5 : i64[1,1]
%3 = philox %0, %1, %2 : u32[3,37]
store %3 to Y{{0, 0}}
)",
                                       m, n);
    Guarded counter(i64, {kRows, kCols}), seed(i64, {m, n}), y(u32, {kRows, kCols});
    counter.fill([](int64_t i) { return static_cast<double>(i * 0x123456789); });
    seed.fill([](int64_t i) { return static_cast<double>((i + 1) * 0x3456789ab - 5); });
    run_text(ir, {counter, seed, y}, GetParam());
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      const int64_t key = (m == 1 ? 0 : i / kCols * n) + (n == 1 ? 0 : i % kCols);
      const auto c = static_cast<uint64_t>(get(counter.view(), i)),
                 s = static_cast<uint64_t>(get(seed.view(), key));
      ASSERT_EQ(get(y.view(), i), philox(s, 5, c).word[0]) << m << "x" << n << " at " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Random, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tw::test
