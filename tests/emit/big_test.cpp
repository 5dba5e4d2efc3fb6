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

/// What an element of an operand of BIG_04 is, and the scale of block b: products and sums of them
/// are exact.
double factor_at(int64_t i) { return static_cast<double>((i * 7 + i / 128 * 3) % 5 - 2); }
double power_at(int64_t b) { return static_cast<double>(int64_t{1} << (b * 5 + b / 11) % 4); }

/// The fp8 product with scales of 1x128 and 128x128 whose output has 2.7e9 elements: its corners,
/// and the rows in which offsets pass 2^31.
TEST_P(BigCases, BIG_04) {
  constexpr int64_t kRows = 73728, kCols = 36864, kDepth = 128, kTile = 64;
  const std::string ir = R"(program scaled
dim M
dim N
dim K
in A: e4m3[M, K]
in A_scale: f32[M, cdiv(K, 128)]
in B: e4m3[N, K]
in B_scale: f32[cdiv(N, 128), cdiv(K, 128)]
out C: bf16[M, N]
grid (cdiv(M, 64), cdiv(N, 64))

%0 = full 0 : f32[64,64]
%1 = for i0 in 0..cdiv(K, 128) step 1 carry (%2 = %0) : f32[64,64] {
  %3 = load A{pid0*64, i0*128} : e4m3[64,128]
  %4 = cast %3 : f32[64,128]
  %5 = load A_scale{pid0*64, i0} : f32[64,1]
  %6 = mul %4, %5 : f32[64,128]
  %7 = load B{pid1*64, i0*128} : e4m3[64,128]
  %8 = cast %7 : f32[64,128]
  %9 = load B_scale{floordiv(pid1, 2), i0} : f32[1,1]
  %10 = mul %8, %9 : f32[64,128]
  %11 = transpose %10 perm (1, 0) : f32[128,64]
  %12 = dot ieee %6, %11, %2 : f32[64,64]
  yield %12
}
%13 = cast %1 : bf16[64,64]
store %13 to C{pid0*64, pid1*64}
)";
  uint8_t codes[5];
  for (int v = -2; v <= 2; ++v) codes[v + 2] = static_cast<uint8_t>(encode(e4m3, v));
  const auto operand = [&](int64_t rows) {
    Tensor t = host_tensor(e4m3, {rows, kDepth});
    for (int64_t i = 0; i < t.count(); ++i)
      t.data<uint8_t>()[i] = codes[static_cast<int>(factor_at(i)) + 2];
    return t;
  };
  const auto scales = [](int64_t n) {
    Tensor t = host_tensor(f32, {n, 1});
    for (int64_t i = 0; i < n; ++i) t.data<float>()[i] = static_cast<float>(power_at(i));
    return t;
  };
  const Tensor a = operand(kRows), b = operand(kCols);
  const Tensor a_scale = scales(kRows), b_scale = scales(kCols / 128);
  const auto want = [&](int64_t row, int64_t col) {
    double sum = 0;
    for (int64_t t = 0; t < kDepth; ++t)
      sum += factor_at(row * kDepth + t) * factor_at(col * kDepth + t);
    return decode(bf16, encode(bf16, sum * power_at(row) * power_at(col / 128)));
  };
  constexpr int64_t kPassing = 58254;  // 58254 * 36864 + 8192 is 2^31
  static_assert(kPassing * kCols < int64_t{1} << 31 && (kPassing + 1) * kCols > int64_t{1} << 31);
  for (const int64_t row : {int64_t{0}, kPassing, kRows - 1}) {
    const int64_t tile = row / kTile, first = tile * kTile, across = kCols / kTile;
    const bool whole = row == kPassing;
    Guarded c(bf16, {kTile, kCols});
    const std::vector<TensorView> all{a, a_scale, b, b_scale, around(c, first, {kRows, kCols})};
    const auto run = [&](int64_t from, int64_t to) {
      run_instances(ir, all, GetParam(), tile * across + from, tile * across + to);
    };
    run(0, whole ? across : 1);
    if (!whole) run(across - 1, across);
    EXPECT_EQ(c.damage(), "");
    for (int64_t i = row - (row > 0); i <= row + (whole ? 1 : 0); ++i)
      for (int64_t j = 0; j < kCols; ++j) {
        if (!whole && j >= kTile && j < kCols - kTile) continue;
        ASSERT_EQ(get(c.view(), (i - first) * kCols + j), want(i, j)) << i << "," << j;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, BigCases, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tw::test
