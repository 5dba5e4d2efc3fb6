// Tensors of more than 2^31 elements. Instances that reach the places of interest run on a window
// of memory: the tensor's address is that of its first element, were it all there.
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tw/num/codec.h"

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

class BigCases : public testing::TestWithParam<std::string> {};

/// The tensor `dims` of which `window` holds the rows (or elements) from `first` on.
TensorView around(const Guarded& window, int64_t first, const std::vector<int64_t>& dims) {
  TensorView t = window.view();
  const int64_t row = dims.size() == 1 ? 1 : dims[1];
  t.data = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(t.data) -
                                   static_cast<uintptr_t>(first * row * bytes(t.dtype)));
  t.dims = dims;
  t.strides = dims.size() == 1 ? std::vector<int64_t>{1} : std::vector<int64_t>{row, 1};
  return t;
}

TEST_P(BigCases, BIG_01) {
  constexpr int64_t kRows = 40960, kCols = 128256, kBlocks = 126;  // of 1024 columns
  const std::string ir = R"(program copy
dim M
dim N
in X: f16[M, N]
out Y: f16[M, N]
grid (M, cdiv(N, 1024))

%0 = load X{pid0, pid1*1024} : f16[1,1024]
store %0 to Y{pid0, pid1*1024}
)";
  for (const int64_t element : {int64_t{1} << 31, int64_t{1} << 32, kRows * kCols - 1}) {
    const int64_t first = std::min(element / kCols - 1, kRows - 3);
    Guarded x(f16, {3, kCols}), y(f16, {3, kCols});
    x.fill([&](int64_t i) { return static_cast<double>((first * 7 + i * 31) % 2048); });
    run_instances(ir, {around(x, first, {kRows, kCols}), around(y, first, {kRows, kCols})},
                  GetParam(), first * kBlocks, (first + 3) * kBlocks);
    EXPECT_EQ(y.damage(), "");
    for (int64_t i = 0; i < 3 * kCols; ++i)
      ASSERT_EQ(get(y.view(), i), get(x.view(), i)) << "row " << first + i / kCols;
  }
}

TEST_P(BigCases, BIG_02) {
  constexpr int64_t kCount = 3'270'680'000;
  const std::string ir = R"(program fill
dim N
out Y: f16[N]
grid (cdiv(N, 1000))

%0 = iota axis 0 : i64[1000]
%1 = index pid0*1000 : i64[1]
%2 = add %0, %1 : i64[1000]
%3 = full 0 : i64[1]
%4 = philox %2, %3, %3 : u32[1000]
%5 = full 21 : u32[1]
%6 = shr %4, %5 : u32[1000]
%7 = cast %6 : f16[1000]
store %7 to Y{pid0*1000}
)";
  for (const int64_t element : {int64_t{0}, (int64_t{1} << 31) - 1, kCount - 1}) {
    const int64_t block = element / 1000;
    Guarded y(f16, {1000});
    run_instances(ir, {around(y, block * 1000, {kCount})}, GetParam(), block, block + 1);
    EXPECT_EQ(y.damage(), "");
    for (int64_t i = 0; i < 1000; ++i) {
      const auto counter = static_cast<uint64_t>(block * 1000 + i);
      ASSERT_EQ(get(y.view(), i), philox(0, 0, counter).word[0] >> 21) << counter;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, BigCases, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tw::test
