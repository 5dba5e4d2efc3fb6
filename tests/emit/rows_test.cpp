#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

double value_at(int64_t i) {
  std::mt19937 g(static_cast<unsigned>(i) * 7919u + 13u);
  return std::uniform_real_distribution<float>(-3, 3)(g);
}

class Rows : public testing::TestWithParam<std::string> {
 protected:
  /// rows, columns: empty ones, less than a vector, a whole tile, tiles and a rest.
  const std::vector<std::pair<int64_t, int64_t>> shapes_ = {{1, 1},  {3, 7},    {5, 512}, {4, 513},
                                                            {9, 63}, {2, 1030}, {0, 5},   {3, 0}};
};

/// Groups of 8, which are shorter than a register: elements times what `factor` adds to them.
std::string groups_of_8(const std::string& params, const std::string& factor,
                        const std::string& type = "f32") {
  return fmt::format(
      "program groups\n{0}in X: f32[64, 1024]\nout Y: {2}[64, 1]\ngrid (1)\n"
      "%0 = load X{{0, 0}} : f32[64,1024]\n%1 = reshape %0 : f32[64,128,8]\n{1}",
      params, factor, type);
}

TEST_P(Rows, ShortGroupsTimesWhatChangesInThem) {
  Guarded w(f32, {8}), x(f32, {64, 1024}), y(f32, {64, 1});
  x.fill([](int64_t i) { return static_cast<double>(i % 7); });
  w.fill([](int64_t i) { return static_cast<double>(i - 3); });
  run_text(groups_of_8("in W: f32[8]\n",
                       "%2 = load W{0} : f32[8]\n%3 = reshape %2 : f32[1,1,8]\n"
                       "%4 = mul %1, %3 : f32[64,128,8]\n%5 = reshape %4 : f32[64,1024]\n"
                       "%6 = reduce sum %5 axis 1 : f32[64,1]\nstore %6 to Y{0, 0}\n"),
           {w, x, y}, GetParam());
  for (int64_t i = 0; i < 64; ++i) {
    double want = 0;
    for (int64_t j = 0; j < 1024; ++j) want += get(x.view(), i * 1024 + j) * (j % 8 - 3.0);
    ASSERT_EQ(get(y.view(), i), want) << i;
  }
}

/// Of S there are fewer rows than of X: the others are 0.
TEST_P(Rows, ShortGroupsTimesRowsThatEnd) {
  for (const char* type : {"f32", "i32"}) {
    Guarded s(f32, {5, 128}), x(f32, {64, 1024}), y(*dtype_named(type), {64, 1});
    x.fill([](int64_t i) { return static_cast<double>(i % 7); });
    s.fill([](int64_t i) { return static_cast<double>(i % 5 - 1); });
    run_text(groups_of_8("dim R\nin S: f32[R, 128]\n",
                         fmt::format("%2 = load S{{0, 0}} : f32[64,128]\n"
                                     "%3 = reshape %2 : f32[64,128,1]\n"
                                     "%4 = mul %1, %3 : f32[64,128,8]\n"
                                     "%5 = reshape %4 : f32[64,1024]\n"
                                     "%6 = cast %5 : {0}[64,1024]\n"
                                     "%7 = reduce max %6 axis 1 : {0}[64,1]\n"
                                     "store %7 to Y{{0, 0}}\n",
                                     type),
                         type),
             {s, x, y}, GetParam());
    for (int64_t i = 0; i < 64; ++i) {
      double want = -1e9;
      for (int64_t j = 0; j < 1024; ++j) {
        const double factor = i < 5 ? get(s.view(), i * 128 + j / 8) : 0;
        want = std::max(want, get(x.view(), i * 1024 + j) * factor);
      }
      ASSERT_EQ(get(y.view(), i), want) << type << " " << i;
    }
  }
}

/// A tile that others stretch, gathered at a row that data names.
TEST_P(Rows, SharedValuesThatDataPlaces) {
  const int64_t n = 200;
  Guarded s(f32, {3, n}), ids(i32, {1}), x(f32, {n, 64}), y(f32, {n, 64});
  s.fill(value_at);
  x.fill(value_at);
  ids.fill([](int64_t) { return 2; });
  run_text(
      "program shared\ndim N\nin S: f32[3, N]\nin ids: i32[1]\nin X: f32[N, 64]\n"
      "out Y: f32[N, 64]\ngrid (cdiv(N, 64))\n%0 = load ids{0} : i32[1]\n"
      "%1 = reshape %0 : i32[1,1]\n%2 = iota axis 0 : i64[64,1]\n%3 = index pid0*64 : i64[1,1]\n"
      "%4 = add %2, %3 : i64[64,1]\n%5 = gather S{%1, %4} : f32[64,1]\n"
      "%6 = exp %5 : f32[64,1]\n%7 = load X{pid0*64, 0} : f32[64,64]\n"
      "%8 = mul %7, %6 : f32[64,64]\nstore %8 to Y{pid0*64, 0}\n",
      {s, ids, x, y}, GetParam());
  for (int64_t i = 0; i < n * 64; ++i) {
    const double want = get(x.view(), i) * std::exp(get(s.view(), 2 * n + i / 64));
    ASSERT_NEAR(get(y.view(), i), want, std::fabs(want) * 1e-5);
  }
}

const char* const kSoftmax = R"(program softmax
dim M
dim N
in X: f32[M, N]
out Y: f32[M, N]
grid (cdiv(M, 4))
%0 = full -inf : f32[4,1]
%1 = full 0 : f32[4,1]
%15, %16 = for i0 in 0..cdiv(N, 512) step 1 carry (%2 = %1, %3 = %0) : f32[4,1], f32[4,1] {
  %4 = load X{pid0*4, i0*512} pad -inf : f32[4,512]
  %5 = reduce max %4 axis 1 : f32[4,1]
  %6 = max %3, %5 : f32[4,1]
  %7 = sub %3, %6 : f32[4,1]
  %8 = exp %7 : f32[4,1]
  %9 = mul %2, %8 : f32[4,1]
  %10 = sub %4, %6 : f32[4,512]
  %11 = exp %10 : f32[4,512]
  %12 = reduce sum %11 axis 1 : f32[4,1]
  %13 = add %9, %12 : f32[4,1]
  yield %13, %6
}
for i1 in 0..cdiv(N, 512) step 1 {
  %17 = load X{pid0*4, i1*512} pad -inf : f32[4,512]
  %18 = sub %17, %16 : f32[4,512]
  %19 = exp %18 : f32[4,512]
  %20 = div %19, %15 : f32[4,512]
  store %20 to Y{pid0*4, i1*512}
}
)";

TEST_P(Rows, SoftmaxOfAnyLength) {
  for (const auto& [m, n] : shapes_) {
    Guarded x(f32, {m, n}, {n + 3, 1}), y(f32, {m, n}, {n + 5, 1});
    x.fill(value_at);
    run_text(kSoftmax, {x, y}, GetParam());
    EXPECT_EQ(y.damage(), "");
    for (int64_t i = 0; i < m; ++i) {
      double most = -INFINITY, sum = 0;
      for (int64_t j = 0; j < n; ++j) most = std::max(most, get(x.view(), i * n + j));
      for (int64_t j = 0; j < n; ++j) sum += std::exp(get(x.view(), i * n + j) - most);
      for (int64_t j = 0; j < n; ++j) {
        const double want = std::exp(get(x.view(), i * n + j) - most) / sum;
        ASSERT_NEAR(get(y.view(), i * n + j), want, want * 1e-5)
            << m << "x" << n << " " << i << "," << j;
      }
    }
  }
}

/// Rows of a length that vectors do not divide: the last one is combined under a mask.
TEST_P(Rows, ShortIntegersOfAnyLength) {
  constexpr DType kTypes[] = {i8, u8, i16, u16};
  for (const char* op : {"max", "min"}) {
    std::string head = fmt::format("program {}\ndim M\ndim N\n", op), body;
    for (const DType t : kTypes) head += fmt::format("in X{0}: {0}[M, N]\n", name(t));
    for (const DType t : kTypes) head += fmt::format("out Y{0}: {0}[M, 1]\n", name(t));
    int v = 0;
    for (const DType t : kTypes) {
      body += fmt::format(
          "%{1} = load X{0}{{pid0*2, -3}} pad 3 : {0}[2,40]\n"
          "%{2} = reduce {3} %{1} axis 1 : {0}[2,1]\nstore %{2} to Y{0}{{pid0*2, 0}}\n",
          name(t), v, v + 1, op);
      v += 2;
    }
    for (const int64_t n : {1, 24, 50}) {
      std::vector<Guarded> owners;
      for (const DType t : kTypes) owners.emplace_back(t, std::vector<int64_t>{5, n});
      for (const DType t : kTypes) owners.emplace_back(t, std::vector<int64_t>{5, 1});
      for (size_t k = 0; k < 4; ++k)
        owners[k].fill([](int64_t i) { return static_cast<double>(i * 37 % 101); });
      const std::vector<TensorView> tensors(owners.begin(), owners.end());
      run_text(head + "grid (cdiv(M, 2))\n\n" + body, tensors, GetParam());
      for (size_t k = 0; k < 4; ++k) {
        for (int64_t i = 0; i < 5; ++i) {
          double want = 3;  // the pad, before the first column
          for (int64_t j = 0; j < std::min<int64_t>(n, 37); ++j) {
            const double x = get(tensors[k], i * n + j);
            want = op == std::string("max") ? std::max(want, x) : std::min(want, x);
          }
          EXPECT_EQ(get(tensors[k + 4], i), want) << op << " " << name(kTypes[k]) << " n " << n;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Rows, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tw::test
