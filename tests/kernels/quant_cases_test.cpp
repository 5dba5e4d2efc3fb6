#include <cmath>
#include <gmock/gmock.h>
#include <numbers>
#include <random>

#include "tw/kernels/quant/quant.h"
#include "tw/kernels/quant/repack.h"

#include "tests/kernels/run_kernel.h"
#include "tests/support/expect_error.h"

// Quantised products and quantisers. Names like QNT_01 are the rows of tests/cases/README.md.
namespace tw {

using kernels::Int4Weights;
using kernels::Problem;
using test::run_kernel;
using test::tensor;
using testing::Each;
using testing::ElementsAre;

static std::vector<double> random_values(int64_t n, unsigned seed, bool normal = true) {
  std::mt19937 g(seed);
  std::normal_distribution<float> bell;
  std::uniform_real_distribution<float> flat(-1, 1);
  std::vector<double> all(n);
  for (double& x : all) x = normal ? bell(g) : flat(g);
  return all;
}

static Tensor random_bytes(std::vector<int64_t> dims, unsigned seed) {
  std::mt19937 g(seed);
  Tensor t = host_tensor(u8, std::move(dims));
  for (int64_t i = 0; i < t.count(); ++i) t.data<uint8_t>()[i] = static_cast<uint8_t>(g());
  return t;
}

static Problem int4(int64_t m, int64_t n, int64_t k, int64_t group, bool zeros,
                    const char* scale = "f32") {
  return {{{"m", m}, {"n", n}, {"k", k}, {"group", group}},
          f32,
          {{"scale", scale}, {"zero_points", zeros ? "yes" : "no"}}};
}

/// Largest error over its bound of the product with these weights.
static double worst(const Problem& p, const Tensor& x, const Int4Weights& w) {
  std::vector<Tensor> in{x, w.codes, w.scales};
  if (w.zero_points) in.push_back(*w.zero_points);
  const std::vector<double> y = run_kernel("gemv_int4", p, in)[0];
  const std::vector<TensorView> views(in.begin(), in.end());
  const Tensor out = tensor(f32, {std::ssize(y)}, y);
  return check::worst_error(kernels::gemv_int4_reference(p, views), std::vector<TensorView>{out})
      .ratio;
}

TEST(QuantCases, QNT_01) {
  const int64_t m = 3, n = 4, k = 2048, group = 512, groups = 4;
  const std::vector<double> a = random_values(m * k, 1);
  const std::vector<double> y =
      run_kernel("gemv_int4", int4(m, n, k, group, true),
                 {tensor(f32, {m, k}, a),
                  tensor(u8, {n, groups, group / 2}, std::vector<double>(n * k / 2, 0x22)),
                  tensor(f32, {n, groups}, std::vector<double>(n * groups, 0.5)),
                  tensor(u8, {n, groups / 2}, std::vector<double>(n * groups / 2, 0x33))})[0];
  const check::Accuracy how{check::Family::gemm, f32, f32, Precision::ieee, k + 1, 0};
  for (int64_t i = 0; i < m * n; ++i) {
    double sum = 0, sum_abs = 0;
    for (int64_t t = 0; t < k; ++t) sum += a[i / n * k + t], sum_abs += std::abs(a[i / n * k + t]);
    EXPECT_NE(y[i], 0);
    EXPECT_LE(std::abs(y[i] + sum / 2), check::bound(how, sum / 2, sum_abs / 2));
  }
}

// Three groups: two bytes of zero points a row.
TEST(QuantCases, QNT_02) {
  const int64_t n = 3, k = 96, group = 32;
  const Int4Weights w{random_bytes({n, 3, 16}, 3),
                      tensor(f32, {n, 3}, random_values(n * 3, 4, false)),
                      tensor(u8, {n, 2}, {0x21, 3, 0x21, 3, 0x21, 3})};
  EXPECT_LE(worst(int4(1, n, k, group, true), tensor(f32, {1, k}, random_values(k, 3)), w), 1);
}

/// An identity picks out every weight, exactly.
TEST(QuantCases, QNT_03) {
  const int64_t k = 128, n = 64, group = 64, words = n / 8;
  std::mt19937 g(0);
  std::vector<std::vector<int>> codes(k, std::vector<int>(n)), zeros(2, std::vector<int>(n));
  for (auto& row : codes)
    for (int& c : row) c = static_cast<int>(g() % 16);
  for (auto& row : zeros)
    for (int& c : row) c = static_cast<int>(g() % 16);
  const auto pack = [&](const std::vector<std::vector<int>>& rows) {
    constexpr int kOrder[] = {0, 2, 4, 6, 1, 3, 5, 7};  // as AutoAWQ packs
    Tensor t = host_tensor(i32, {std::ssize(rows), words});
    for (size_t r = 0; r < rows.size(); ++r) {
      for (int64_t c = 0; c < words; ++c) {
        uint32_t word = 0;
        for (int i = 0; i < 8; ++i)
          word |= static_cast<uint32_t>(rows[r][c * 8 + kOrder[i]]) << (4 * i);
        t.data<int32_t>()[static_cast<int64_t>(r) * words + c] = static_cast<int32_t>(word);
      }
    }
    return t;
  };
  const Tensor scales = tensor(f16, {2, n}, random_values(2 * n, 5, false));
  const Int4Weights w = kernels::repack_awq(pack(codes), pack(zeros), scales);
  std::vector<double> identity(k * k, 0);
  for (int64_t i = 0; i < k; ++i) identity[i * k + i] = 1;
  const std::vector<double> y =
      run_kernel("gemv_int4", int4(k, n, k, group, true, "f16"),
                 {tensor(f32, {k, k}, identity), w.codes, w.scales, *w.zero_points})[0];
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j)
      ASSERT_EQ(y[i * n + j], (codes[i][j] - zeros[i / group][j]) * get(scales, i / group * n + j));
}

TEST(QuantCases, QNT_04) {
  const int64_t n = 10000, block = 256;
  std::vector<double> x = random_values(n, 6, false);
  std::fill(x.begin(), x.begin() + block, 0.0);
  const auto out = run_kernel("quantize_int8", {{{"m", 1}, {"k", n}, {"group", block}}, f32, {}},
                              {tensor(f32, {1, n}, x)});
  EXPECT_THAT(std::vector<double>(out[0].begin(), out[0].begin() + block), Each(0));
  EXPECT_EQ(out[1][0], 0);
  for (const double s : out[1]) EXPECT_FALSE(std::isnan(s));
  for (int64_t i = block; i < n; ++i)
    ASSERT_LE(std::abs(out[0][i] * out[1][i / block] - x[i]), out[1][i / block]);
  for (const char* zeros : {"no", "yes"}) {
    const auto four = run_kernel(
        "quantize_int4",
        {{{"n", 1}, {"k", n}, {"group", block}}, f32, {{"scale", "f32"}, {"zero_points", zeros}}},
        {tensor(f32, {1, n}, x)});
    EXPECT_THAT(std::vector<double>(four[0].begin(), four[0].begin() + block / 2),
                Each(*zeros == 'n' ? 0x88 : 0));
    EXPECT_EQ(four[1][0], 0);
  }
}

TEST(QuantCases, QNT_05) {
  const int64_t giant = int64_t{1} << 62;
  const auto empty = run_kernel("quantize_int8", {{{"m", 1}, {"k", 0}, {"group", 8}}, f32, {}},
                                {tensor(f32, {1, 0}, {})});
  EXPECT_TRUE(empty[0].empty() && empty[1].empty());
  const auto one = run_kernel("quantize_int8", {{{"m", 1}, {"k", 1}, {"group", giant}}, f32, {}},
                              {tensor(f32, {1, 1}, {-3})});
  EXPECT_THAT(one[0], ElementsAre(-127));
  EXPECT_THAT(one[1], ElementsAre(static_cast<double>(3.0f / 127)));
}

TEST(QuantCases, QNT_06) {
  const int64_t m = 7, n = 8, k = 9;
  const Tensor a = random_bytes({m, k}, 8), b = random_bytes({k, n}, 9);
  const std::vector<double> c =
      run_kernel("matmul_integer", {{{"m", m}, {"n", n}, {"k", k}}, u8, {{"b", "u8"}}},
                 {a, b, tensor(u8, {1}, {128}), tensor(u8, {1}, {127}).expand({n})})[0];
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < k; ++t) sum += (get(a, i * k + t) - 128) * (get(b, t * n + j) - 127);
      EXPECT_EQ(c[i * n + j], sum);
    }
  }
}

// ---- layouts

TEST(Repack, OnnxNeighboursBecomeHalves) {
  // Codes 0..7 of one group of 8; two groups; the second row counts down.
  const Tensor packed = tensor(u8, {2, 1, 4}, {0x10, 0x32, 0x54, 0x76, 0x67, 0x45, 0x23, 0x01});
  const Int4Weights w = kernels::repack_onnx(packed, tensor(f32, {2}, {1, 2}));
  EXPECT_THAT(to_doubles(w.codes), ElementsAre(0x40, 0x51, 0x62, 0x73, 0x37, 0x26, 0x15, 0x04));
  EXPECT_THAT(to_doubles(w.scales), ElementsAre(1, 2));
  EXPECT_FALSE(w.zero_points);
}

TEST(Repack, OddGroupsLeaveTheLastNibbleEmpty) {
  const Int4Weights w =
      kernels::repack_onnx(tensor(u8, {1, 3, 1}, {0, 0, 0}), tensor(f32, {3}, {1, 1, 1}),
                           tensor(u8, {2}, {0x21, 0xf3}).view());
  EXPECT_THAT(to_doubles(*w.zero_points), ElementsAre(0x21, 3));
}

TEST(Repack, RefusesWhatDoesNotFit) {
  const Tensor two = tensor(u8, {1, 2, 1}, {0, 0}), scales = tensor(f32, {2}, {1, 1});
  TW_EXPECT_ERROR(UserError, "wanted f32 or f16 of 2 elements",
                  [&] { kernels::repack_onnx(two, tensor(f32, {1}, {1})); });
  TW_EXPECT_ERROR(UserError, "wanted u8 of 1 elements, 1 a row", [&] {
    kernels::repack_onnx(two, scales, tensor(u8, {2}, {0, 0}).view());
  });
  TW_EXPECT_ERROR(UserError, "wanted u8[N, G, group/2]",
                  [&] { kernels::repack_onnx(scales, scales); });
  const Tensor words = tensor(i32, {3, 1}, {0, 0, 0});
  TW_EXPECT_ERROR(UserError, "K a multiple of 2 G", [&] {
    kernels::repack_awq(words, tensor(i32, {1, 1}, {0}), scales);
  });
}

TEST(Repack, BitsandbytesHasTheFirstNeighbourOnTop) {
  const Tensor packed = tensor(u8, {8}, {0x01, 0x23, 0x45, 0x67, 0x76, 0x54, 0x32, 0x10});
  const Int4Weights w = kernels::repack_bitsandbytes(packed, tensor(f32, {4}, {1, 2, 3, 4}), 2, 8);
  EXPECT_THAT(to_doubles(w.codes), ElementsAre(0x20, 0x31, 0x64, 0x75, 0x57, 0x46, 0x13, 0x02));
  EXPECT_THAT(to_doubles(w.scales), ElementsAre(1, 2, 3, 4));
  TW_EXPECT_ERROR(UserError, "even blocks that end with the rows", [&] {
    kernels::repack_bitsandbytes(packed, tensor(f32, {3}, {1, 2, 3}), 2, 8);
  });
}

/// Quantiles of the normal distribution, scaled so that the outermost are 1: seven of each side of
/// 0 above it, eight below (create_normal_map of bitsandbytes).
TEST(Nf4, CodesAreQuantilesOfTheNormalDistribution) {
  const auto quantile = [](double p) {
    double low = -9, high = 9;
    for (int i = 0; i < 100; ++i) {
      const double middle = (low + high) / 2;
      (std::erfc(-middle / std::sqrt(2.0)) / 2 < p ? low : high) = middle;
    }
    return low;
  };
  // (1 - 1/30 + 1 - 1/32) / 2, in as many digits as theirs has.
  const double outermost = 0.9677083, top = quantile(outermost);
  const auto scaled = [&](int i, int steps) {
    return quantile(0.5 + i * (outermost - 0.5) / steps) / top;
  };
  // Theirs come of probabilities in f32, off by an ulp; the quantile is as steep as 1 / density.
  const auto expect_near = [&](double got, double want) {
    const double slope = std::sqrt(2 * std::numbers::pi) * std::exp(want * top * want * top / 2);
    EXPECT_LE(std::abs(got - want), std::ldexp(1, -24) * slope / top);
  };
  EXPECT_EQ(kernels::kNf4[7], 0);
  for (int i = 1; i <= 8; ++i) expect_near(kernels::kNf4[7 + i], scaled(i, 8));
  for (int i = 1; i <= 7; ++i) expect_near(kernels::kNf4[7 - i], -scaled(i, 7));
}

TEST(Int4, QuantisedWeightsGiveTheProductOfWhatTheyStandFor) {
  const int64_t n = 5, k = 150, group = 32, groups = 5;
  const std::vector<double> d = random_values(n * k, 11);
  for (const bool zeros : {false, true}) {
    Problem p = int4(1, n, k, group, zeros);
    Problem of_weights = p;
    of_weights.shape.erase("m");
    const auto w = run_kernel("quantize_int4", of_weights, {tensor(f32, {n, k}, d)});
    std::vector<Tensor> in{tensor(f32, {1, k}, std::vector<double>(k, 0)),
                           tensor(u8, {n, groups, group / 2}, w[0]),
                           tensor(f32, {n, groups}, w[1])};
    if (zeros) in.push_back(tensor(u8, {n, 3}, w[2]));
    for (const int64_t t : {0, 31, 32, 149}) {
      std::vector<double> unit(k, 0);
      unit[t] = 1;
      in[0] = tensor(f32, {1, k}, unit);
      const std::vector<double> y = run_kernel("gemv_int4", p, in)[0];
      for (int64_t i = 0; i < n; ++i)  // to half a step
        EXPECT_LE(std::abs(y[i] - d[i * k + t]), 0.51 * w[1][i * groups + t / group]);
    }
  }
}

TEST(Int4, OddGroupsAreRefused) {
  const kernels::KernelEntry& four = kernels::kernel_named("gemv_int4");
  TW_EXPECT_ERROR(UserError, "a group of 7 elements: wanted a multiple of 2",
                  [&] { four.arguments(int4(1, 1, 7, 7, false)); });
  const kernels::KernelEntry& mixed = kernels::kernel_named("gemv_int4_int8");
  TW_EXPECT_ERROR(UserError, "wanted a multiple of 8",
                  [&] { mixed.arguments(int4(1, 1, 12, 12, false)); });
}

}  // namespace tw
