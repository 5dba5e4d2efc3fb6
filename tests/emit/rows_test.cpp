#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

double random_value(int64_t i) {
  std::mt19937 g(static_cast<unsigned>(i) * 7919u + 13u);
  return std::uniform_real_distribution<float>(-3, 3)(g);
}

class Rows : public testing::TestWithParam<std::string> {
 protected:
  /// rows, columns: empty ones, less than a vector, a whole tile, tiles and a rest.
  const std::vector<std::pair<int64_t, int64_t>> shapes_ = {{1, 1},  {3, 7},    {5, 512}, {4, 513},
                                                            {9, 63}, {2, 1030}, {0, 5},   {3, 0}};
};

const char* const kSoftmax = R"(program softmax
dim M
dim N
in X: f32[M, N]
out Y: f32[M, N]
grid (cdiv(M, 4))
%0 = full -inf : f32[4,1]
%1 = full 0 : f32[4,1]
%15, %16 = for i0 in 0..cdiv(N, 512) step 1 carry (%2 = %1, %3 = %0) : f32[4,1], f32[4,1] {
  %4 = load X{pid0*4, i0*512} pad -inf : f32[4,512]
  %5 = reduce max %4 axis 1 : f32[4,1]
  %6 = max %3, %5 : f32[4,1]
  %7 = sub %3, %6 : f32[4,1]
  %8 = exp %7 : f32[4,1]
  %9 = mul %2, %8 : f32[4,1]
  %10 = sub %4, %6 : f32[4,512]
  %11 = exp %10 : f32[4,512]
  %12 = reduce sum %11 axis 1 : f32[4,1]
  %13 = add %9, %12 : f32[4,1]
  yield %13, %6
}
for i1 in 0..cdiv(N, 512) step 1 {
  %17 = load X{pid0*4, i1*512} pad -inf : f32[4,512]
  %18 = sub %17, %16 : f32[4,512]
  %19 = exp %18 : f32[4,512]
  %20 = div %19, %15 : f32[4,512]
  store %20 to Y{pid0*4, i1*512}
}
)";

TEST_P(Rows, SoftmaxOfAnyLength) {
  for (const auto& [m, n] : shapes_) {
    Guarded x(f32, {m, n}, {n + 3, 1}), y(f32, {m, n}, {n + 5, 1});
    x.fill(random_value);
    run_text(kSoftmax, {x, y}, GetParam());
    EXPECT_EQ(y.damage(), "");
    for (int64_t i = 0; i < m; ++i) {
      double most = -INFINITY, sum = 0;
      for (int64_t j = 0; j < n; ++j) most = std::max(most, get(x.view(), i * n + j));
      for (int64_t j = 0; j < n; ++j) sum += std::exp(get(x.view(), i * n + j) - most);
      for (int64_t j = 0; j < n; ++j) {
        const double want = std::exp(get(x.view(), i * n + j) - most) / sum;
        ASSERT_NEAR(get(y.view(), i * n + j), want, want * 1e-5)
            << m << "x" << n << " " << i << "," << j;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Rows, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tw::test
