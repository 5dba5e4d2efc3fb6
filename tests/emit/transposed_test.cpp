#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

class Transposed : public testing::TestWithParam<std::string> {};

double number_at(int64_t i) { return static_cast<double>(i * 29 % 251); }

/// Tiles that lie whole, partly and not at all in their tensors: square blocks where they can be,
/// elements elsewhere.
TEST_P(Transposed, TilesOfAnyPlace) {
  for (const auto& [t, rows, cols] : {std::tuple{f32, 16, 32},
                                      {f32, 48, 16},
                                      {bf16, 32, 32},
                                      {f64, 16, 16},
                                      {i32, 16, 24},
                                      {f32, 7, 16},
                                      {u8, 64, 64}})
    for (const auto& [m, n] : {std::pair{96, 96}, {50, 70}, {3, 200}, {0, 16}}) {
      const std::string ir = fmt::format(R"(program turn
dim M
dim N
in X: {0}[M, N]
out Y: {0}[N, M]
grid (cdiv(M, {1}), cdiv(N, {2}))

%0 = load X{{pid0*{1}, pid1*{2}}} : {0}[{1},{2}]
%1 = transpose %0 perm (1, 0) : {0}[{2},{1}]
store %1 to Y{{pid1*{2}, pid0*{1}}}
)",
                                         name(t), rows, cols);
      Guarded x(t, {m, n}, {n + 3, 1}), y(t, {n, m}, {m + 5, 1});
      x.fill(number_at);
      run_text(ir, {x, y}, GetParam());
      EXPECT_EQ(y.damage(), "");
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          ASSERT_EQ(get(y.view(), j * m + i), get(x.view(), i * n + j))
              << name(t) << " " << rows << "x" << cols << " of " << m << "x" << n << " at " << i
              << "," << j;
    }
}

/// The values are computed on the way, from operands that stand still along one axis or the other.
TEST_P(Transposed, SumsOfWhatStandsStill) {
  const std::string ir = R"(program sums
in X: f32[32, 16]
in A: f32[1, 16]
in B: f32[32, 1]
out Y: f32[16, 32]
grid (1)

%0 = load X{0, 0} : f32[32,16]
%1 = load A{0, 0} : f32[1,16]
%2 = load B{0, 0} : f32[32,1]
%3 = add %0, %1 : f32[32,16]
%4 = add %3, %2 : f32[32,16]
%5 = transpose %4 perm (1, 0) : f32[16,32]
store %5 to Y{0, 0}
)";
  Guarded x(f32, {32, 16}), a(f32, {1, 16}), b(f32, {32, 1}), y(f32, {16, 32});
  for (Guarded* g : {&x, &a, &b}) g->fill(number_at);
  run_text(ir, {x, a, b, y}, GetParam());
  for (int64_t i = 0; i < 32; ++i)
    for (int64_t j = 0; j < 16; ++j)
      ASSERT_EQ(get(y.view(), j * 32 + i), number_at(i * 16 + j) + number_at(j) + number_at(i));
}

/// An axis beside the two that are exchanged, which may end inside the tile.
TEST_P(Transposed, ThirdAxisOfAnyLength) {
  const std::string ir = R"(program turn
dim B
dim M
in X: f32[B, M, 16]
out Y: f32[B, 16, M]
grid (cdiv(B, 3), cdiv(M, 32))

%0 = load X{pid0*3, pid1*32, 0} : f32[3,32,16]
%1 = transpose %0 perm (0, 2, 1) : f32[3,16,32]
store %1 to Y{pid0*3, 0, pid1*32}
)";
  for (const auto& [b, m] : {std::pair{3, 32}, {4, 64}, {2, 40}}) {
    Guarded x(f32, {b, m, 16}), y(f32, {b, 16, m});
    x.fill(number_at);
    run_text(ir, {x, y}, GetParam());
    EXPECT_EQ(y.damage(), "");
    for (int64_t i = 0; i < b * m * 16; ++i)
      ASSERT_EQ(get(y.view(), i / m / 16 * m * 16 + i % 16 * m + i / 16 % m), number_at(i)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Transposed, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tw::test
