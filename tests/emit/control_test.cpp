#include <gtest/gtest.h>

#include "tests/emit/run_text.h"

namespace tw::test {

namespace {

Tensor numbers(const std::vector<double>& values) {
  Tensor t = host_tensor(f32, {static_cast<int64_t>(values.size())});
  for (int64_t i = 0; i < t.count(); ++i) set(t, i, values[static_cast<size_t>(i)]);
  return t;
}

}  // namespace

// Fibonacci numbers and their predecessors: each carried tile takes the other's old value.
TEST(Control, CarriedTilesChangeAtOnce) {
  const std::string text = R"(program fibonacci
dim N
in a: f32[4]
in b: f32[4]
out c: f32[4]
out d: f32[4]
grid (1)

%0 = load a{0} : f32[4]
%1 = load b{0} : f32[4]
%5, %6 = for i0 in 0..N step 1 carry (%2 = %0, %3 = %1) : f32[4], f32[4] {
  %4 = add %2, %3 : f32[4]
  yield %4, %2
}
store %5 to c{0}
store %6 to d{0}
)";
  const Tensor a = numbers({1, 2, 3, 0.5}), b = numbers({0, 0, 0, 0});
  const Tensor c = numbers({0, 0, 0, 0}), d = numbers({0, 0, 0, 0});
  run_text(text, {a, b, c, d}, "generic", {{"N", 10}});
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(get(c, i), 89 * get(a, i));
    EXPECT_EQ(get(d, i), 55 * get(a, i));
  }
}

// A sum of products that moves to another carried tile, whose own tile is written before.
TEST(Control, ASumOfProductsMovesToAnotherTile) {
  const std::string text = R"(program moves
in a: f32[4]
out c: f32[4]
out d: f32[4]
grid (1)

%0 = load a{0} : f32[4]
%1 = reshape %0 : f32[2,2]
%2 = full 0 : f32[2,2]
%8, %9 = for i0 in 0..3 step 1 carry (%3 = %2, %4 = %2) : f32[2,2], f32[2,2] {
  %5 = dot ieee %1, %1, %3 : f32[2,2]
  %6 = full 1 : f32[2,2]
  %7 = add %4, %6 : f32[2,2]
  yield %7, %5
}
%10 = reshape %8 : f32[4]
store %10 to c{0}
%11 = reshape %9 : f32[4]
store %11 to d{0}
)";
  const Tensor a = numbers({1, 2, 3, 4});  // its square is 7 10 15 22
  const Tensor c = numbers({0, 0, 0, 0}), d = numbers({0, 0, 0, 0});
  run_text(text, {a, c, d}, "generic");
  // (x, y) -> (y + 1, x + s): (0, 0), (1, s), (s + 1, s + 1), (s + 2, 2 s + 1).
  const std::vector<double> square{7, 10, 15, 22};
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(get(c, i), square[static_cast<size_t>(i)] + 2);
    EXPECT_EQ(get(d, i), 2 * square[static_cast<size_t>(i)] + 1);
  }
}

}  // namespace tw::test
