#include <gmock/gmock.h>

#include "tw/lang/lang.h"

#include "tests/kernels/run_kernel.h"

// Cases about the language that need a running kernel; names are rows of tests/cases/README.md.
namespace tw {

using test::run_program;
using test::tensor;
using testing::Each;
using testing::ElementsAre;

TEST(Cases, LANG_01_WidthsThatAreNoPowersOfTwo) {
  for (int64_t width : {16, 24, 40, 48, 96}) {
    Trace k("twice_a_row");
    TensorRef D = k.input("d", f32, {width}), Y = k.output("y", f32, {32, width});
    auto [p] = k.grid(1);
    Tile d = as_row(load(D.tile({p}, {width})));
    store(Y.tile({0, 0}, {32, width}), broadcast(d * 2, {32, width}));
    std::vector<double> values(width), want;
    for (int64_t j = 0; j < width; ++j) values[j] = static_cast<double>(j) - 7;
    for (int64_t i = 0; i < 32 * width; ++i) want.push_back(2 * values[i % width]);
    EXPECT_EQ(run_program(k.finish(), {tensor(f32, {width}, values)}, f32, {32, width}), want);
  }
}

/// Elementwise over i32 a[2], b[2].
static std::vector<double> integers(Tile (*op)(const Tile&, const Tile&), std::vector<double> a,
                                    std::vector<double> b) {
  const int64_t n = std::ssize(a);
  Trace k("integers");
  TensorRef A = k.input("a", i32, {n}), B = k.input("b", i32, {n}), Y = k.output("y", i32, {n});
  auto [p] = k.grid(1);
  store(Y.tile({p}, {n}), op(load(A.tile({0}, {n})), load(B.tile({0}, {n}))));
  return run_program(k.finish(), {tensor(i32, {n}, a), tensor(i32, {n}, b)}, i32, {n});
}

TEST(Cases, LANG_02_TruncatingDivision) {
  std::vector<double> a = {-7, -7, 7, 7, -7}, b = {3, -3, 3, -3, 0};
  auto quotient = [](const Tile& x, const Tile& y) { return x / y; };
  auto remainder = [](const Tile& x, const Tile& y) { return x % y; };
  auto again = [](const Tile& x, const Tile& y) { return (x / y) * y + x % y; };
  EXPECT_THAT(integers(quotient, a, b), ElementsAre(-2, 2, 2, -2, 0));
  EXPECT_THAT(integers(remainder, a, b), ElementsAre(-1, -1, 1, 1, 0));
  a.pop_back(), b.pop_back();
  EXPECT_EQ(integers(again, a, b), a);
}

TEST(Cases, LANG_02_FlooringDivisionOfIndices) {
  Trace k("floor_division");
  TensorRef Y = k.output("y", i64, {4});
  auto [p] = k.grid(4);
  Index x = p * 14 - 21;  // -21, -7, 7, 21
  store(Y.tile({p}, {1}), k.zeros(i64, {1}) + (x / 3) * 100 + x % 3);
  EXPECT_THAT(run_program(k.finish(), {}, i64, {4}),
              ElementsAre(-7 * 100 + 0, -3 * 100 + 2, 2 * 100 + 1, 7 * 100 + 0));
}

TEST(Cases, NUM_01_RoundingsOfTheProgramAreKept) {
  auto scale = [](bool narrow) {
    Trace k("scale");
    TensorRef X = k.input("x", bf16, {1, 8}), Y = k.output("y", f32, {1, 1});
    auto [p] = k.grid(1);
    Tile largest = row_max(cast(load(X.tile({0, 0}, {1, 8})), f32));
    Tile s = 448.f / largest;
    store(Y.tile({p, 0}, {1, 1}), narrow ? cast(cast(s, bf16), f32) : s);
    return run_program(k.finish(), {tensor(bf16, {1, 8}, {1, 2, 4.28125, -3, 0, 0.5, 1, 4})}, f32,
                       {1, 1})[0];
  };
  EXPECT_EQ(scale(true), 104.5);
  EXPECT_EQ(scale(false), static_cast<double>(448.f / 4.28125f));
}

}  // namespace tw
