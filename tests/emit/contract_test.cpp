#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tw/check/bound.h"

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"
#include "tests/support/product_text.h"

namespace tw::test {
namespace {

/// Where the elements of A, B and C lie: side by side along rows, along columns, or apart.
enum class Layout : uint8_t { rows, columns, apart };

struct Problem {
  DType in = f32, out = f32;
  bool epilogue = false;  ///< max(sum + bias, 0), and the plain sum to a second output
  Layout a = Layout::rows, b = Layout::rows, c = Layout::rows;
  int64_t bm = 64, bn = 96, bk = 16;
};

std::string program(const Problem& p) {
  return product_text({.in = p.in,
                       .sum = check::accumulator_of(p.in),
                       .out = p.out,
                       .epilogue = p.epilogue,
                       .bm = p.bm,
                       .bn = p.bn,
                       .bk = p.bk});
}

Guarded matrix(DType t, int64_t rows, int64_t cols, Layout layout) {
  if (layout == Layout::rows) return Guarded(t, {rows, cols}, {cols + 3, 1});
  if (layout == Layout::columns) return Guarded(t, {rows, cols}, {1, rows + 5});
  return Guarded(t, {rows, cols}, {2 * cols + 1, 2});
}

/// In (-1, 1), without a pattern along rows or columns.
double random_value(int64_t i) {
  const uint64_t mixed = (static_cast<uint64_t>(i) + 1) * 0x9e3779b97f4a7c15u;
  return static_cast<double>(static_cast<int64_t>((mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u)) *
         0x1p-63;
}

/// No rows, columns or terms; too much to be read in place; less than a register tile; ragged ends
/// of every height; several blocks of k, rows and columns.
constexpr int64_t kShapes[][3] = {{1, 1, 1},      {2, 35, 1100}, {13, 31, 7},     {15, 33, 9},
                                  {64, 64, 64},   {65, 97, 129}, {100, 50, 1},    {3, 5, 0},
                                  {0, 5, 3},      {5, 0, 3},     {150, 130, 560}, {28, 64, 513},
                                  {17, 33, 1100}, {259, 33, 20}, {5, 2100, 6}};

std::vector<double> numbers(const Guarded& t) {
  std::vector<double> all;
  for (int64_t i = 0; i < t.view().count(); ++i) all.push_back(get(t.view(), i));
  return all;
}

/// Worst error over its bound; infinity and NaN stand in the last row, column and term, where
/// padding would carry them to other sums. Layouts and pieces are of plain f32 products, whose text
/// other tests compile as kernels are.
double worst(const Problem& p, const std::string& isa, const Mapping& mapping = {},
             const char* level = "-Og") {
  const DType sum = check::accumulator_of(p.in);
  double most = 0;
  for (const auto& [m, columns, terms] : kShapes) {
    const int64_t n = columns, k = terms;  // lambdas may not capture bindings
    Guarded a = matrix(p.in, m, k, p.a), b = matrix(p.in, k, n, p.b);
    Guarded bias(sum, {n}, {1}), c = matrix(p.out, m, n, p.c), d(sum, {m, n}, {n + 1, 1});
    a.fill(random_value);
    b.fill([](int64_t i) { return random_value(i + 100000); });
    bias.fill(random_value);
    if (m > 4 && n > 4 && k > 4) {
      set(a.view(), m * k - 1, INFINITY);
      set(b.view(), k * n - 1, INFINITY);
      set(b.view(), 2, NAN);
    }
    std::vector<TensorView> tensors{a, b, c};
    if (p.epilogue) tensors = {a, b, bias, c, d};
    run_text(program(p), tensors, isa, {}, mapping, level);
    EXPECT_EQ(c.damage(), "") << m << "x" << n << "x" << k;
    const std::vector<double> as = numbers(a), bs = numbers(b);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double value = 0, sum_abs = 0;
        for (int64_t t = 0; t < k; ++t) {
          const double x = as[i * k + t] * bs[t * n + j];
          value += x;
          sum_abs += std::abs(x);
        }
        const auto ratio = [&](DType out, const Guarded& got, double want) {
          const double bound = check::bound(
              {.family = check::Family::gemm, .out = out, .accumulate = sum, .terms = k + 1}, want,
              sum_abs);
          return check::error_ratio(out, get(got.view(), i * n + j), want, bound);
        };
        if (p.epilogue) {
          most = std::max(most, ratio(sum, d, value));
          const double shift = get(bias.view(), j);
          sum_abs += std::abs(shift);
          value = std::isnan(value + shift) ? NAN : std::max(value + shift, 0.0);
        }
        most = std::max(most, ratio(p.out, c, value));
      }
    }
  }
  return most;
}

class Contract : public testing::TestWithParam<std::string> {};

TEST_P(Contract, EveryLayout) {
  for (const Layout a : {Layout::rows, Layout::columns, Layout::apart}) {
    for (const Layout b : {Layout::rows, Layout::columns, Layout::apart}) {
      const double most = worst({.a = a, .b = b}, GetParam());
      EXPECT_LE(most, 1) << "layouts " << static_cast<int>(a) << " " << static_cast<int>(b);
      EXPECT_GE(most, 0.02);
    }
  }
  for (const Layout c : {Layout::columns, Layout::apart}) EXPECT_LE(worst({.c = c}, GetParam()), 1);
}

TEST_P(Contract, EveryTypeAndEpilogue) {
  const std::pair<DType, DType> types[] = {{f32, bf16}, {bf16, f32}, {bf16, bf16},
                                           {f16, f16},  {f64, f64},  {e4m3, f32}};
  for (const auto& [in, out] : types) {
    const Layout l = in == bf16 ? Layout::columns : Layout::rows;
    const Problem p{.in = in, .out = out, .epilogue = true, .a = l, .b = l, .c = l};
    EXPECT_LE(worst(p, GetParam(), {}, "-O2"), 1) << name(in) << " to " << name(out);
  }
}

TEST_P(Contract, PiecesOfAnySize) {
  const std::pair<int64_t, int64_t> sizes[] = {{5, 9}, {64, 96}, {300, 16}};
  for (const auto& [rows, cols] : sizes) {
    const Mapping mapping{.knobs = {{"pm", rows}, {"pn", cols}}};
    for (const Layout l : {Layout::rows, Layout::columns, Layout::apart}) {
      const Problem p{.epilogue = l == Layout::columns, .a = l, .b = l};
      EXPECT_LE(worst(p, GetParam(), mapping), 1) << rows << "x" << cols;
    }
  }
}

/// Lanes of one vector lie on both sides of a mask.
TEST_P(Contract, OperandsWithMasks) {
  constexpr int64_t m = 40, n = 75, k = 50;
  const std::string text =
      "program masked\ndim M\ndim N\ndim K\nin A: f32[M, K]\nin B: f32[K, N]\n"
      "out C: f32[M, N]\ngrid (cdiv(M, 64), cdiv(N, 96))\n\n"
      "%0 = load A{pid0*64, 0} : f32[64,50]\n%1 = load B{0, pid1*96} : f32[50,96]\n"
      "%2 = iota axis 1 : i64[1,96]\n%3 = index N - 20 - pid1*96 : i64[1,1]\n"
      "%4 = lt %2, %3 : b1[1,96]\n%5 = full 0 : f32[1,1]\n%6 = where %4, %1, %5 : f32[50,96]\n"
      "%7 = iota axis 0 : i64[64,1]\n%8 = index M - 9 - pid0*64 : i64[1,1]\n"
      "%9 = lt %7, %8 : b1[64,1]\n%10 = where %9, %0, %5 : f32[64,50]\n"
      "%11 = full 0 : f32[64,96]\n%12 = dot ieee %10, %6, %11 : f32[64,96]\n"
      "store %12 to C{pid0*64, pid1*96}\n";
  for (const Layout l : {Layout::rows, Layout::columns, Layout::apart}) {
    Guarded a = matrix(f32, m, k, l), b = matrix(f32, k, n, l), c = matrix(f32, m, n, l);
    const auto small = [](int64_t i) { return static_cast<double>(i * 7 % 5 - 2); };
    a.fill(small);
    b.fill(small);
    run_text(text, {a, b, c}, GetParam());
    const std::vector<double> as = numbers(a), bs = numbers(b), got = numbers(c);
    for (int64_t e = 0; e < m * n; ++e) {
      const int64_t i = e / n, j = e % n;
      double want = 0;
      for (int64_t t = 0; t < k; ++t) want += as[i * k + t] * bs[t * n + j];
      if (i >= m - 9 || j >= n - 20) want = 0;
      ASSERT_EQ(got[e], want) << i << ", " << j << " layout " << static_cast<int>(l);
    }
  }
}

TEST(Contract, TextNamesItsBlocks) {
  Guarded a = matrix(f32, 64, 64, Layout::rows);
  const std::string text = text_for(program({}), {a, a, a}, "avx512");
  EXPECT_NE(text.find("// Register tiles of 14x32; blocks of 512 k, "), std::string::npos);
  EXPECT_NE(text.find("tw_tile_f32_14x32("), std::string::npos);
  EXPECT_NE(text.find("tw_tile_f32_14x32_in_place("), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Isas, Contract, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tw::test
