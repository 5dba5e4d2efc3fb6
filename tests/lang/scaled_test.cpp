#include <gtest/gtest.h>

#include "tw/interp/interpreter.h"
#include "tw/lang/lang.h"

#include "tests/support/guarded.h"

namespace tw::test {
namespace {

/// Y is what tiles of X stand for.
Program dequantized(const ScaledFormat& format, int64_t rows, int64_t cols) {
  Trace k("dequantized");
  Index M = k.dim("M"), K = k.dim("K");
  ScaledRef X = k.input_scaled("X", format, {M, K});
  TensorRef Y = k.output("Y", f32, {M, K});
  auto [m, j] = k.grid(cdiv(M, rows), cdiv(K, cols));
  store(Y.tile({m, j}, {rows, cols}), load(X.tile({m, j}, {rows, cols})));
  return k.finish();
}

double element(int64_t i) { return static_cast<double>(i % 5) - 2; }
double scale(int64_t i) { return std::ldexp(1, static_cast<int>(i % 7) - 3); }

/// Whole blocks, parts of blocks, one block an element; ends inside tiles and blocks.
TEST(Scaled, ALoadMultipliesByTheScaleOfTheBlock) {
  for (const ScaledFormat& f : {mx(e2m1), nvfp4(), ScaledFormat{e4m3, f32, {4, 8}},
                                ScaledFormat{i4, bf16, {1, 1}}, ScaledFormat{i8, f16, {2, 6}}}) {
    const auto [high, wide] = f.block;
    for (const auto& [rows, cols] : {std::pair{high * 2, wide * 2},
                                     {high, wide},
                                     {high * 3, wide},
                                     {int64_t{1}, wide / 2 + wide % 2}}) {
      const int64_t m = 3 * high + 1, n = 2 * wide + 3;
      const int64_t down = (m + high - 1) / high, across = (n + wide - 1) / wide;
      Guarded x(f.element, {m, n}), s(f.scale, {down, across}), y(f32, {m, n});
      x.fill(element);
      s.fill(scale);
      interpret(dequantized(f, rows, cols), {x, s}, {y});
      EXPECT_EQ(y.damage(), "");
      for (int64_t i = 0; i < m * n; ++i)
        ASSERT_EQ(get(y.view(), i), element(i) * scale(i / n / high * across + i % n / wide))
            << name(f.element) << " in tiles of " << rows << "x" << cols << " at " << i;
    }
  }
}

/// [] takes the scales of the block that the row lies in; the scales' extents are checked.
TEST(Scaled, LeadingAxesAreFixed) {
  Trace k("rows");
  Index M = k.dim("M"), K = k.dim("K");
  ScaledRef X = k.input_scaled("X", {e4m3, f32, {2, 4}}, {M, K});
  TensorRef Y = k.output("Y", f32, {M, K});
  auto [m] = k.grid(M);
  store(Y[m].tile({0}, {8}), load(X[m].tile({0}, {8})));
  const Program p = k.finish();
  Guarded x(e4m3, {5, 7}), s(f32, {3, 2}), y(f32, {5, 7});
  x.fill(element);
  s.fill(scale);
  interpret(p, {x, s}, {y});
  for (int64_t i = 0; i < 35; ++i)
    ASSERT_EQ(get(y.view(), i), element(i) * scale(i / 7 / 2 * 2 + i % 7 / 4)) << i;
  Guarded few(f32, {2, 2});
  EXPECT_THROW(interpret(p, {x, few}, {y}), UserError);
}

}  // namespace
}  // namespace tw::test
