#include "tw/kernels/histogram/histogram.h"

#include <cmath>
#include <gtest/gtest.h>

#include "tw/interp/interpreter.h"

#include "tests/kernels/run_kernel.h"
#include "tests/support/expect_error.h"

namespace tw {

using check::Guarded;
using kernels::HistogramForm;
using test::run_kernel;
using test::tensor;

TEST(Histogram, EdgesAndWhatIsNotCounted) {
  const double inf = INFINITY, nan = NAN, just = std::nextafterf(1, 0);
  const Tensor x = tensor(f32, {1, 11}, {-1, 1, just, -0.5, 0, -0.0, 1.5, -1.5, inf, -inf, nan});
  const auto counts = run_kernel("histogram", {{{"m", 1}, {"n", 11}, {"bins", 4}}, f32}, {x})[0];
  EXPECT_EQ(counts, (std::vector<double>{1, 1, 2, 2}));
  const Tensor ids = tensor(i32, {1, 6}, {0, 3, 4, -1, 3, 2147483647});
  EXPECT_EQ(run_kernel("histogram", {{{"m", 1}, {"n", 6}, {"bins", 4}}, i32}, {ids})[0],
            (std::vector<double>{1, 0, 0, 2}));
}

TEST(Histogram, CountsOfManyInstancesAddUp) {
  constexpr int64_t n = 20'011, bins = 19;
  Guarded x(i64, {n});
  x.fill([](int64_t i) { return static_cast<double>(i * i % 23 - 2); });
  std::vector<double> want(bins, 5);
  for (int64_t i = 0; i < n; ++i)
    if (const int64_t v = i * i % 23 - 2; v >= 0 && v < bins) want[v] += 1;
  const Program program =
      kernels::histogram_add({.dtype = i64, .bins = bins}, {.cols = 96, .blocks = 3});
  const Device cpu = Device::open("cpu:0");
  for (const int threads : {1, 4}) {
    Guarded y(i32, {bins});
    y.fill([](int64_t) { return 5; });
    compile(program, cpu, {.threads = threads})({x}, {y});
    EXPECT_EQ(to_doubles(y), want) << threads;
    EXPECT_EQ(y.damage(), "");
  }
}

TEST(Histogram, RefusesFormsWithoutMeaning) {
  TW_EXPECT_ERROR(UserError, "histogram of 0 bins; wanted at least 1",
                  [] { kernels::histogram(HistogramForm{.bins = 0}); });
  TW_EXPECT_ERROR(UserError, "histogram from 2 to 1; wanted lo < hi",
                  [] { kernels::histogram_add(HistogramForm{.lo = 2, .hi = 1}); });
  TW_EXPECT_ERROR(UserError, "bins / (hi - lo) a positive number of f32",
                  [] { kernels::histogram(HistogramForm{.dtype = f32, .lo = 0, .hi = 1e-38f}); });
  TW_EXPECT_ERROR(UserError, "histogram of f64",
                  [] { kernels::histogram(HistogramForm{.dtype = f64, .lo = 0, .hi = 1}); });
}

}  // namespace tw
