#include <cmath>
#include <gmock/gmock.h>
#include <limits>

#include "tests/kernels/run_kernel.h"

// Cases that broke comparable systems; the names are the rows of tests/cases/README.md.
namespace tw {

using kernels::Problem;
using test::run_kernel;
using test::tensor;
using testing::Each;
using testing::ElementsAre;
using testing::IsNan;

static constexpr double kInf = std::numeric_limits<double>::infinity();
static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

static Problem rows(int64_t m, int64_t n, const char* op = nullptr) {
  Problem p{{{"m", m}, {"n", n}}, f32, {}};
  if (op) p.options["op"] = op;
  return p;
}

static std::vector<double> argmax_of(int64_t m, int64_t n, const std::vector<double>& x) {
  return run_kernel("row_reduce", rows(m, n, "argmax"), {tensor(f32, {m, n}, x)})[0];
}

/// Largest error over its bound, of the kernel's output against its reference.
static double worst(const char* kernel, const Problem& p, const std::vector<Tensor>& in) {
  const kernels::KernelEntry& entry = kernels::kernel_named(kernel);
  const std::vector<TensorView> views(in.begin(), in.end());
  const check::Reference want = entry.reference(complete(entry, p), views);
  const std::vector<double> got = run_kernel(kernel, p, in)[0];
  const Tensor out = tensor(want.accuracy.out, {std::ssize(got)}, got);
  return check::worst_error(want, std::vector<TensorView>{out}).ratio;
}

TEST(RowCases, RED_01) {
  EXPECT_THAT(argmax_of(2, 2, {kInf, kNan, kNan, kInf}), ElementsAre(1, 0));
}

TEST(RowCases, RED_02) { EXPECT_THAT(argmax_of(4, 12, std::vector<double>(48, -kInf)), Each(0)); }

TEST(RowReduce, TiesAcrossChunksTakeTheLowestIndex) {
  std::vector<double> x(3000, -kInf);
  x[1500] = x[2500] = 7;
  EXPECT_THAT(argmax_of(1, 3000, x), ElementsAre(1500));
}

TEST(RowCases, RED_05) {
  EXPECT_THAT(run_kernel("row_reduce", rows(3, 0, "mean"), {tensor(f32, {3, 0}, {})})[0],
              Each(IsNan()));
  EXPECT_THAT(run_kernel("row_reduce", rows(3, 0, "max"), {tensor(f32, {3, 0}, {})})[0],
              Each(-kInf));
  EXPECT_THAT(run_kernel("row_reduce", rows(3, 0, "argmax"), {tensor(f32, {3, 0}, {})})[0],
              Each(-1));
}

TEST(RowCases, RED_06) {
  EXPECT_THAT(run_kernel("row_reduce", rows(1, 0, "sum"), {tensor(f32, {1, 0}, {})})[0],
              ElementsAre(0));
  EXPECT_THAT(run_kernel("column_reduce", rows(0, 3, "sum"), {tensor(f32, {0, 3}, {})})[0],
              ElementsAre(0, 0, 0));
}

static std::vector<Tensor> norm_inputs(const std::vector<double>& x) {
  const int64_t n = std::ssize(x);
  return {tensor(f32, {1, n}, x), tensor(f32, {n}, std::vector<double>(n, 1)),
          tensor(f32, {n}, std::vector<double>(n, 0))};
}

TEST(RowCases, NORM_01) {
  for (double base : {40000.0, 80000.0}) {
    auto in = norm_inputs({base, base + 1, base + 2, base + 3});
    EXPECT_LE(worst("layernorm", rows(1, 4), in), 1);
    std::vector<double> y = run_kernel("layernorm", rows(1, 4), in)[0];
    EXPECT_LT(y[0], -1.3416);
    EXPECT_GT(y[0], -1.3417);
  }
}

TEST(RowCases, NORM_02) {
  const std::vector<double> x = {1e30, -1e30, 1e30, -1e30, 1e30, -1e30, 1e30, -1e30};
  EXPECT_THAT(run_kernel("layernorm", rows(1, 8), norm_inputs(x))[0],
              ElementsAre(1, -1, 1, -1, 1, -1, 1, -1));
  auto in = norm_inputs(x);
  in.pop_back();
  EXPECT_THAT(run_kernel("rmsnorm", rows(1, 8), in)[0], ElementsAre(1, -1, 1, -1, 1, -1, 1, -1));
}

TEST(RowCases, NORM_03) {
  constexpr int64_t n = 4096;
  std::vector<double> x(3 * n);
  for (int64_t i = 0; i < 3 * n; ++i) x[i] = std::sin(static_cast<double>(i) * 1.7) * 3;
  for (int64_t j = 0; j < n / 2; ++j) x[n + j] = x[2 * n + n / 2 + j] = -kInf;
  Tensor in = tensor(f32, {3, n}, x);
  EXPECT_LE(worst("softmax", rows(3, n), {in}), 1);
  std::vector<double> y = run_kernel("softmax", rows(3, n), {in})[0];
  for (int64_t j = 0; j < n / 2; ++j) {
    EXPECT_EQ(y[n + j], 0);
    EXPECT_EQ(y[2 * n + n / 2 + j], 0);
  }
}

}  // namespace tw
