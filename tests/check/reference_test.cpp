#include "tw/check/reference.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace tw::check {

static Reference exact(std::vector<double> values) {
  std::vector<double> none(values.size(), 0);
  return {{.family = Family::exact, .out = f32}, {{std::move(values), std::move(none)}}};
}

TEST(WorstError, NamesTheElementFurthestOff) {
  Tensor y = host_tensor(f32, {3});
  for (int64_t i = 0; i < 3; ++i) set(y, i, static_cast<double>(i));
  Reference want{{.family = Family::elementwise, .out = f32}, {{{0, 1, 4}, {0, 1, 4}}}};
  std::vector<TensorView> out = {y};
  Worst w = worst_error(want, out);
  EXPECT_EQ(w.index, 2);
  EXPECT_EQ(w.error, 2);
  EXPECT_GT(w.ratio, 1);
}

TEST(WorstError, IsZeroWhenAllAgree) {
  Tensor y = host_tensor(f32, {2});
  set(y, 0, std::nan(""));
  set(y, 1, -0.0);
  std::vector<TensorView> out = {y};
  EXPECT_EQ(worst_error(exact({std::nan(""), -0.0}), out).ratio, 0);
  EXPECT_EQ(worst_error(exact({1, -0.0}), out).error, std::numeric_limits<double>::infinity());
}

}  // namespace tw::check
