#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

class Scan : public testing::TestWithParam<std::string> {};

double small_at(int64_t i) { return static_cast<double>(i * 37 % 11 - 5); }

double folded(const std::string& combiner, double a, double b) {
  if (combiner == "sum") return a + b;
  if (combiner == "max") return std::max(a, b);
  return static_cast<double>(static_cast<int64_t>(a) ^ static_cast<int64_t>(b));
}

/// The scan of x along axis `axis` of [a, b, c], element by element.
std::vector<double> scanned(const TensorView& x, const std::vector<int64_t>& shape, int axis,
                            const std::string& combiner, bool reverse) {
  int64_t stride = 1;
  for (size_t k = shape.size(); k-- > static_cast<size_t>(axis) + 1;) stride *= shape[k];
  std::vector<double> y;
  for (int64_t i = 0; i < x.count(); ++i) y.push_back(get(x, i));
  const int64_t n = shape[static_cast<size_t>(axis)];
  for (int64_t step = 1; step < n; ++step) {
    const int64_t k = reverse ? n - 1 - step : step;
    for (int64_t i = 0; i < x.count(); ++i) {
      if (i / stride % n != k) continue;
      const auto at = static_cast<size_t>(i),
                 before = static_cast<size_t>(reverse ? i + stride : i - stride);
      y[at] = folded(combiner, y[before], y[at]);
    }
  }
  return y;
}

struct ScanOf {
  DType type;
  const char* combiner;
};
constexpr ScanOf kScans[] = {{f32, "sum"}, {f16, "sum"}, {u8, "xor"}, {i64, "max"}};

/// All of them on tensors of one shape, along each axis, from either end.
std::string all_scans(const std::string& extents) {
  std::string head = "program scans\n", body;
  int v = 0;
  for (const ScanOf& s : kScans) {
    const std::string n = name(s.type), type = n + extents;
    head += fmt::format("in X{}: {}\n", n, type);
    body += fmt::format("%{} = load X{}{{0, 0, 0}} : {}\n", v, n, type);
    const int x = v++;
    for (int axis = 0; axis < 3; ++axis)
      for (const char* order : {"", "reverse "}) {
        body +=
            fmt::format("%{0} = scan {1}{2} %{3} axis {4} : {5}\nstore %{0} to Y{0}{{0, 0, 0}}\n",
                        v, order, s.combiner, x, axis, type);
        head += fmt::format("out Y{}: {}\n", v++, type);
      }
  }
  return head + "grid (1)\n\n" + body;
}

/// Small integers: exact in every type and grouping.
TEST_P(Scan, EveryAxisTypeAndDirection) {
  const std::vector<std::vector<int64_t>> shapes = {{2, 37, 1}, {3, 5, 21}};
  for (const auto& shape : shapes) {
    const std::string ir = all_scans(fmt::format("[{},{},{}]", shape[0], shape[1], shape[2]));
    std::vector<Guarded> owners;
    for (const ScanOf& s : kScans) {
      owners.emplace_back(s.type, shape)
          .fill(s.type == u8 ? [](int64_t i) { return static_cast<double>(i * 37 % 101); }
                             : small_at);
      for (int out = 0; out < 6; ++out) owners.emplace_back(s.type, shape);
    }
    run_text(ir, std::vector<TensorView>(owners.begin(), owners.end()), GetParam());
    for (size_t k = 0; k < std::size(kScans); ++k)
      for (int out = 0; out < 6; ++out) {
        const Guarded& y = owners[k * 7 + 1 + static_cast<size_t>(out)];
        EXPECT_EQ(y.damage(), "");
        const std::vector<double> want =
            scanned(owners[k * 7].view(), shape, out / 2, kScans[k].combiner, out % 2 == 1);
        for (int64_t i = 0; i < y.view().count(); ++i)
          ASSERT_EQ(get(y.view(), i), want[static_cast<size_t>(i)])
              << name(kScans[k].type) << " axis " << out / 2 << " reverse " << out % 2 << " at "
              << i;
      }
  }
}

/// Affine maps x -> a x + b composed along an axis: left and right differ.
TEST_P(Scan, TuplesKeepTheirOrder) {
  for (const bool reverse : {false, true}) {
    const std::string ir = fmt::format(R"(program affine
in A: i32[3, 9]
in B: i32[3, 9]
out C: i32[3, 9]
out D: i32[3, 9]
grid (1)

%0 = load A{{0, 0}} : i32[3,9]
%1 = load B{{0, 0}} : i32[3,9]
%8, %9 = scan {}custom %0, %1 axis 1 : i32[3,9], i32[3,9] (%2, %3, %4, %5) {{
  %6 = mul %2, %4 : i32[]
  %7 = mul %3, %4 : i32[]
  %10 = add %7, %5 : i32[]
  yield %6, %10
}}
store %8 to C{{0, 0}}
store %9 to D{{0, 0}}
)",
                                       reverse ? "reverse " : "");
    Guarded a(i32, {3, 9}), b(i32, {3, 9}), c(i32, {3, 9}), d(i32, {3, 9});
    a.fill([](int64_t i) { return static_cast<double>(i % 3 - 1); });
    b.fill([](int64_t i) { return static_cast<double>(i % 7); });
    run_text(ir, {a, b, c, d}, GetParam());
    for (int64_t row = 0; row < 3; ++row)
      for (int64_t last = 0; last < 9; ++last) {
        // From the left: of elements 0 to last; reverse: of last to 8.
        double slope = 1, offset = 0;
        for (int64_t j = reverse ? last : 0; j <= (reverse ? 8 : last); ++j) {
          slope *= get(a.view(), row * 9 + j);
          offset = offset * get(a.view(), row * 9 + j) + get(b.view(), row * 9 + j);
        }
        ASSERT_EQ(get(c.view(), row * 9 + last), slope) << last << reverse;
        ASSERT_EQ(get(d.view(), row * 9 + last), offset) << last << reverse;
      }
  }
}

TEST_P(Scan, MasksAndSlices) {
  const std::string ir = R"(program seen
in X: i32[2, 19]
out Y: i32[2, 7]
grid (1)

%0 = load X{0, 0} : i32[2,19]
%1 = full 3 : i32[1,1]
%2 = eq %0, %1 : b1[2,19]
%3 = scan or %2 axis 1 : b1[2,19]
%4 = slice %3 at (0, 11) : b1[2,7]
%5 = cast %4 : i32[2,7]
store %5 to Y{0, 0}
)";
  Guarded x(i32, {2, 19}), y(i32, {2, 7});
  x.fill([](int64_t i) { return i == 13 || i == 19 ? 3.0 : 0.0; });
  run_text(ir, {x, y}, GetParam());
  for (int64_t j = 0; j < 7; ++j) {
    EXPECT_EQ(get(y.view(), j), j + 11 >= 13 ? 1 : 0);
    EXPECT_EQ(get(y.view(), 7 + j), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Scan, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tw::test
