#include <gmock/gmock.h>
#include <numeric>

#include "tw/interp/interpreter.h"
#include "tw/kernels/conv/conv.h"
#include "tw/kernels/index/index.h"

#include "tests/kernels/run_kernel.h"
#include "tests/support/expect_error.h"

// Cases that broke comparable systems; the names are the rows of tests/cases/README.md.
namespace tw {

using check::Guarded;
using kernels::Problem;
using kernels::Window;
using test::run_kernel;
using test::tensor;
using testing::Each;
using testing::ElementsAre;

static std::vector<double> all_of(const TensorView& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.count(); ++i) v.push_back(get(t, i));
  return v;
}

/// Where ids outside are to be errors they are checked before the launch; without that they add
/// nothing.
TEST(IndexCases, IDX_01) {
  const std::vector<double> before{1, 2, 3, 4};
  const Tensor ids = tensor(i64, {6}, {0, 1, 0, 1, 2, -1});
  const Tensor x = tensor(f32, {6, 1}, {1, 2, 3, 4, 5, 6});
  const Program program = kernels::index_add_in_place(i64, {.cols = 16});
  const auto on_cpu = [&](const TensorView& y) {
    compile(program, Device::open("cpu:0"))({ids, x}, {y});
  };
  const auto on_interpreter = [&](const TensorView& y) { interpret(program, {ids, x}, {y}); };
  for (const std::function<void(const TensorView&)>& run :
       {std::function<void(const TensorView&)>(on_cpu),
        std::function<void(const TensorView&)>(on_interpreter)}) {
    Guarded y(f32, {4, 1});
    y.fill([&](int64_t i) { return before[static_cast<size_t>(i)]; });
    TW_EXPECT_ERROR(UserError, "'ids' holds -1 at position 5, wanted 0 to 3", [&] {
      kernels::check_ids(ids, 4, "ids");
      run(y);
    });
    EXPECT_EQ(all_of(y), before);
    run(y);
    EXPECT_THAT(all_of(y), ElementsAre(5, 8, 8, 4));
    EXPECT_EQ(y.damage(), "");
  }
  TW_EXPECT_ERROR(UserError, "'ids' is f32[6,1]", [&] { kernels::check_ids(x, 4, "ids"); });
}

/// Ids that ascend, with some outside on both sides and some missing.
static Tensor ascending_ids(int64_t n) {
  std::vector<double> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<double>(i / 7 * 2 - 3));
  return tensor(i32, {n}, ids);
}

TEST(IndexAdd, SortedIdsGiveTheSameBits) {
  constexpr int64_t v = 23, d = 70, n = 100;
  std::vector<double> base(v * d, -0.0), x;
  for (int64_t i = 0; i < n * d; ++i) x.push_back(1.0 / static_cast<double>(i % 97 + 1));
  const Tensor b = tensor(f32, {v, d}, base), i = ascending_ids(n), t = tensor(f32, {n, d}, x);
  Guarded plain(f32, {v, d}), sorted(f32, {v, d});
  const Device cpu = Device::open("cpu:0");
  compile(kernels::index_add(i32, {.cols = 64}), cpu)({b, i, t}, {plain});
  compile(kernels::index_add_sorted(i32, {.rows = 4, .cols = 64}), cpu)({b, i, t}, {sorted});
  EXPECT_EQ(sorted.contents(), plain.contents());
  EXPECT_EQ(sorted.damage(), "");
  Guarded rows(f32, {v, d});
  compile(kernels::index_add_sorted_rows(i32, {.rows = 4, .cols = 64}), cpu)({b, i, t}, {rows});
  EXPECT_EQ(rows.contents(), plain.contents());
  EXPECT_EQ(rows.damage(), "");
}

/// More ids than are looked at together, some far outside.
TEST(IndexAdd, OwnersOfRowsGiveTheSameBits) {
  constexpr int64_t v = 23, d = 40, n = 9000;
  std::vector<double> base(v * d, -0.0), ids, x;
  for (int64_t i = 0; i < n; ++i)
    ids.push_back(static_cast<double>(i % 5 == 0 ? i * 7 % 29 - 3 : -5 - i * i));
  for (int64_t i = 0; i < n * d; ++i) x.push_back(1.0 / static_cast<double>(i % 97 + 1));
  const Tensor b = tensor(f32, {v, d}, base), t = tensor(f32, {n, d}, x);
  const Device cpu = Device::open("cpu:0");
  for (const DType type : {i32, i64}) {
    const Tensor i = tensor(type, {n}, ids);
    Guarded plain(f32, {v, d}), rows(f32, {v, d});
    compile(kernels::index_add(type, {.cols = 64}), cpu)({b, i, t}, {plain});
    compile(kernels::index_add_rows(type, {.rows = 4, .cols = 32}), cpu)({b, i, t}, {rows});
    EXPECT_EQ(rows.contents(), plain.contents());
    EXPECT_EQ(rows.damage(), "");
  }
}

TEST(IndexAdd, AtomicsAddTheSame) {
  constexpr int64_t v = 23, d = 70, n = 100;
  std::vector<double> x;
  for (int64_t i = 0; i < n * d; ++i) x.push_back(static_cast<double>(i % 13 - 6));
  const Tensor b = tensor(f32, {v, d}, std::vector<double>(v * d, 1)), i = ascending_ids(n);
  const Tensor t = tensor(f32, {n, d}, x);
  Guarded plain(f32, {v, d}), atomics(f32, {v, d});
  atomics.fill([](int64_t) { return 1; });
  const Device cpu = Device::open("cpu:0");
  compile(kernels::index_add(i32, {.cols = 64}), cpu)({b, i, t}, {plain});
  compile(kernels::index_add_atomic(i32, {.rows = 8, .cols = 64}), cpu)({i, t}, {atomics});
  EXPECT_EQ(all_of(atomics), all_of(plain));
  EXPECT_EQ(atomics.damage(), "");
}

TEST(IndexAdd, BitsDoNotDependOnThreads) {
  constexpr int64_t v = 5, d = 300, n = 400;
  std::vector<double> base(v * d, 0.5), ids, x;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<double>(i * 7 % 6));
  for (int64_t i = 0; i < n * d; ++i) x.push_back(1.0 / static_cast<double>(i % 97 + 1));
  const Tensor b = tensor(f32, {v, d}, base), i = tensor(i32, {n}, ids), t = tensor(f32, {n, d}, x);
  std::vector<double> first;
  for (const int threads : {1, 2}) {
    Guarded y(f32, {v, d});
    const Device cpu = Device::open("cpu:0");
    compile(kernels::index_add(i32, {.cols = 64}), cpu, {.threads = threads})({b, i, t}, {y});
    if (threads == 1) {
      first = all_of(y);
      std::vector<float> want(base.begin(), base.end());
      for (int64_t r = 0; r < n; ++r)
        for (int64_t c = 0; c < d && ids[r] < v; ++c)
          want[static_cast<int64_t>(ids[r]) * d + c] += static_cast<float>(x[r * d + c]);
      EXPECT_EQ(first, std::vector<double>(want.begin(), want.end()));
    }
    EXPECT_EQ(all_of(y), first) << threads << " threads";
  }
}

static Problem square_conv(int64_t h, int64_t w, int64_t kernel, int64_t dilation, int64_t c,
                           int64_t groups) {
  return {{{"n", 1},
           {"h", h},
           {"w", w},
           {"c", c},
           {"k", c},
           {"groups", groups},
           {"kernel_h", kernel},
           {"kernel_w", kernel},
           {"stride_h", 1},
           {"stride_w", 1},
           {"dilation_h", dilation},
           {"dilation_w", dilation},
           {"before_h", 0},
           {"before_w", 0},
           {"after_h", 0},
           {"after_w", 0}},
          f32,
          {{"bias", "no"}, {"padding", "same"}}};
}

TEST(ConvCases, CONV_01) {
  const Window w{.kernel = 3, .stride = 1, .dilation = 2};
  for (const int64_t extent : {22, 27}) {
    const Window same = kernels::same_padding(w, extent);
    EXPECT_EQ(same.before, 2);
    EXPECT_EQ(same.after, 2);
    EXPECT_EQ(same.places(extent), extent);
  }
  check::Sweep sweep({.whole = false});
  sweep.add("CONV-01", test::subject(kernels::kernel_named("conv2d"),
                                     complete(kernels::kernel_named("conv2d"),
                                              square_conv(22, 27, 3, 2, 4, 1))));
  EXPECT_EQ(sweep.verdict(), "");
}

TEST(ConvCases, CONV_02) {
  const Window same = kernels::same_padding({.kernel = 3, .stride = 1, .dilation = 4}, 100);
  EXPECT_EQ(same.before + same.after, 8);
  EXPECT_EQ(same.places(100), 100);
  const Window odd = kernels::same_padding({.kernel = 4, .stride = 1}, 10);
  EXPECT_EQ(odd.before, 1);
  EXPECT_EQ(odd.after, 2);
  const Problem p{{{"n", 1}, {"w", 100}, {"c", 5}, {"k", 6}, {"kernel_w", 3}, {"dilation_w", 4}},
                  f32,
                  {{"padding", "same"}}};
  const kernels::KernelEntry& entry = kernels::kernel_named("conv1d");
  check::Sweep sweep({.whole = false});
  sweep.add("CONV-02", test::subject(entry, complete(entry, p)));
  EXPECT_EQ(sweep.verdict(), "");
}

TEST(ConvCases, CONV_03) {
  Problem p = square_conv(5, 5, 3, 2, 4, 4);
  p.options = {{"bias", "yes"}, {"padding", "given"}};
  for (const char* axis : {"before_h", "before_w", "after_h", "after_w"}) p.shape[axis] = 2;
  const auto ones = [](std::vector<int64_t> dims) {
    const int64_t n = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    return tensor(f32, std::move(dims), std::vector<double>(static_cast<size_t>(n), 1));
  };
  const std::vector<double> y =
      run_kernel("conv2d", p, {ones({1, 5, 5, 4}), ones({3, 3, 1, 4}), ones({4})})[0];
  const double want[5][5] = {
      {4, 4, 6, 4, 4}, {4, 4, 6, 4, 4}, {6, 6, 9, 6, 6}, {4, 4, 6, 4, 4}, {4, 4, 6, 4, 4}};
  ASSERT_EQ(y.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(y[i], 1 + want[i / 20][i / 4 % 5]) << i;
}

TEST(Conv, RefusesWhatDoesNotFit) {
  const kernels::KernelEntry& entry = kernels::kernel_named("conv2d");
  Problem p = complete(entry, square_conv(5, 5, 3, 1, 6, 4));
  TW_EXPECT_ERROR(UserError, "4 groups of 6 input and 6 output channels",
                  [&] { entry.arguments(p); });
  p.shape["stride_w"] = 0;
  TW_EXPECT_ERROR(UserError, "stride_w is 0, wanted at least 1", [&] { entry.arguments(p); });
  const kernels::KernelEntry& rope = kernels::kernel_named("rope");
  TW_EXPECT_ERROR(UserError, "rope of heads of 5 elements: wanted pairs", [&] {
    rope.arguments(complete(rope, {.shape = {{"d", 5}}}));
  });
}

TEST(CrossEntropy, LabelsThatAreIgnoredOrOutside) {
  const Problem p{{{"m", 4}, {"n", 2}}, f32, {}};
  const auto y = run_kernel(
      "cross_entropy", p,
      {tensor(f32, {4, 2}, std::vector<double>(8, 3)), tensor(i32, {4}, {-100, 0, 2, -1})});
  EXPECT_EQ(y[0][0], 0);
  EXPECT_GT(y[0][1], 0.693147);
  EXPECT_LT(y[0][1], 0.693148);
  EXPECT_TRUE(std::isnan(y[0][2]) && std::isnan(y[0][3]));
  EXPECT_THAT(y[1], Each(y[1][0]));
}

}  // namespace tw
