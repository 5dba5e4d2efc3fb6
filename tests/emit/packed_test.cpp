// Tensors of elements of less than a byte.
#include <cmath>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tw/interp/interpreter.h"
#include "tw/ir/print.h"

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

const DType kPacked[] = {i1, i3, i4, u2, u7, e2m1, e3m2, e2m3};

/// What a code stands for, from the definition of the format.
double meaning(DType t, int code) {
  const int n = static_cast<int>(bits(t));
  if (is_int(t)) return is_signed_int(t) && code >> (n - 1) ? code - (1 << n) : code;
  const int m = t == e2m1 ? 1 : t == e3m2 ? 2 : 3, bias = t == e3m2 ? 3 : 1;
  const int field = code >> m & ((1 << (n - 1 - m)) - 1), fraction = code & ((1 << m) - 1);
  const double magnitude = field ? std::ldexp((1 << m) + fraction, field - bias - m)
                                 : std::ldexp(fraction, 1 - bias - m);
  return code >> (n - 1) ? -magnitude : magnitude;
}

/// Element `at` of a row that begins at `row`, bit by bit.
int code_at(const unsigned char* row, DType t, int64_t at) {
  int code = 0;
  for (int64_t b = 0; b < bits(t); ++b) {
    const int64_t bit = at * bits(t) + b;
    code |= (row[bit / 8] >> bit % 8 & 1) << b;
  }
  return code;
}

struct Sizes {
  int64_t rows, cols;
};

/// For every packed type: Y is X moved by 3 columns (so that no load starts with a byte), F its
/// values in f32, Z those of F cast back; B gives columns one by one.
std::string moved(int64_t tile) {
  std::string params, body;
  for (size_t k = 0; k < std::size(kPacked); ++k) {
    const char* const t = name(kPacked[k]);
    params += fmt::format("in X{0}: {1}[M, N]\nout Y{0}: {1}[M, N]\nout F{0}: f32[M, N]\n", k, t);
    params += fmt::format("out Z{0}: {1}[M, N]\n", k, t);
    body +=
        fmt::format("%{0} = load X{1}{{pid0*2, pid1*{2} - 3}} : {3}[2,{2}]\n", 3 * k, k, tile, t);
    body += fmt::format("%{} = cast %{} : f32[2,{}]\n", 3 * k + 1, 3 * k, tile);
    body += fmt::format("%{} = cast %{} : {}[2,{}]\n", 3 * k + 2, 3 * k + 1, t, tile);
    for (const char* y : {"Y", "F", "Z"})
      body += fmt::format("store %{} to {}{}{{pid0*2, pid1*{}}}\n",
                          3 * k + (*y == 'Y'   ? 0
                                   : *y == 'F' ? 1
                                               : 2),
                          y, k, tile);
  }
  return fmt::format("program moved\ndim M\ndim N\n{}grid (cdiv(M, 2), cdiv(N, {}))\n\n{}", params,
                     tile, body);
}

/// X, Y, F, Z of every type, each with other gaps between rows.
struct Tensors {
  std::deque<Guarded> all;
  std::vector<TensorView> views, inputs, outputs;

  explicit Tensors(const Sizes& s) {
    const std::vector<int64_t> dims{s.rows, s.cols};
    for (size_t k = 0; k < std::size(kPacked); ++k) {
      const DType t = kPacked[k];
      const int64_t row = contiguous_strides(dims, t)[0];
      all.emplace_back(t, dims, std::vector<int64_t>{row + 8, 1});
      all.back().fill([&](int64_t i) { return meaning(t, (i * 37 + i / 5) % (1 << bits(t))); });
      all.emplace_back(t, dims, std::vector<int64_t>{row + 16, 1});
      all.emplace_back(f32, dims);
      all.emplace_back(t, dims);
    }
    for (size_t i = 0; i < all.size(); ++i) {
      views.push_back(all[i].view());
      (i % 4 == 0 ? inputs : outputs).push_back(all[i].view());
    }
  }

  void check() {
    for (size_t k = 0; k < std::size(kPacked); ++k) {
      const TensorView x = views[4 * k], y = views[4 * k + 1], f = views[4 * k + 2],
                       z = views[4 * k + 3];
      for (int i = 0; i < 4; ++i) EXPECT_EQ(all[4 * k + i].damage(), "") << name(x.dtype);
      const auto row = [](const TensorView& t, int64_t m) {
        return static_cast<const unsigned char*>(t.data) + m * t.strides[0] * bits(t.dtype) / 8;
      };
      for (int64_t m = 0; m < x.dims[0]; ++m) {
        for (int64_t n = 0; n < x.dims[1]; ++n) {
          const int want = n < 3 ? 0 : code_at(row(x, m), x.dtype, n - 3);
          ASSERT_EQ(code_at(row(y, m), y.dtype, n), want) << name(x.dtype) << " " << m << "," << n;
          ASSERT_EQ(get(f, m * x.dims[1] + n), meaning(x.dtype, want)) << name(x.dtype);
          ASSERT_EQ(code_at(row(z, m), z.dtype, n), want) << name(x.dtype) << " " << m << "," << n;
        }
      }
    }
  }
};

constexpr Sizes kSizes[] = {{3, 61}, {4, 48}, {1, 1}, {2, 129}, {0, 5}};

class Packed : public testing::TestWithParam<std::string> {};

TEST_P(Packed, RowsAreStreamsOfBits) {
  for (const Sizes& s : kSizes) {
    SCOPED_TRACE(fmt::format("{} x {}", s.rows, s.cols));
    Tensors t(s);
    run_text(moved(48), t.views, GetParam());
    t.check();
  }
}

/// Integers, floats and masks to packed types and back to i32 and f32, every rounding of floats.
TEST_P(Packed, CastsAreThoseOfTheInterpreter) {
  const DType to[] = {i1, i3, i4, i7, u1, u4, u6, e2m1, e3m2, e2m3, e8m0};
  std::string params, body =
                          "%0 = load A{0} : f32[64]\n%1 = load B{0} : i32[64]\n"
                          "%2 = load C{0} : b1[64]\n";
  int v = 3, outs = 0;
  std::vector<DType> types;
  const auto out = [&](const std::string& from, DType t) {
    body += fmt::format("%{} = cast {} : {}[64]\n%{} = cast %{} : f32[64]\n", v, from, name(t),
                        v + 1, v);
    body += fmt::format("store %{} to Y{}{{0}}\n", v + 1, outs);
    params += fmt::format("out Y{}: f32[64]\n", outs++);
    v += 2;
  };
  for (const DType t : to) {
    for (const char* from : {"%0", "%1", "%2"}) out(from, t);
    if (!is_float(t)) continue;
    for (const char* how : {"%0 saturate", "%0 RZ", "%0 RU", "%0 SR seed 3"}) out(how, t);
  }
  const std::string ir = "program casts\nin A: f32[64]\nin B: i32[64]\nin C: b1[64]\n" + params +
                         "grid (1)\n\n" + body;
  Guarded a(f32, {64}), b(i32, {64}), c(b1, {64});
  const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-40, 3e38, -3e38, 0x1p-127};
  a.fill([&](int64_t i) {
    return i < 9 ? special[i]
                 : std::ldexp(1 + i % 8 / 8.0, static_cast<int>(i % 11) - 5) * (i % 3 - 1.0);
  });
  b.fill([](int64_t i) { return i < 2 ? 1e9 * (1 - 2 * i) : i * 5 - 160.0; });
  c.fill([](int64_t i) { return i % 2; });
  std::deque<Guarded> got, want;
  std::vector<TensorView> all{a, b, c}, expected;
  for (int i = 0; i < outs; ++i) {
    all.push_back(got.emplace_back(f32, std::vector<int64_t>{64}).view());
    expected.push_back(want.emplace_back(f32, std::vector<int64_t>{64}).view());
  }
  run_text(ir, all, GetParam());
  interpret(parse(ir), {a, b, c}, expected);
  for (int k = 0; k < outs; ++k) {
    for (int64_t i = 0; i < 64; ++i) {
      const double x = get(got[k].view(), i), y = get(want[k].view(), i);
      ASSERT_TRUE((x == y && std::signbit(x) == std::signbit(y)) ||
                  (std::isnan(x) && std::isnan(y)))
          << "output " << k << " element " << i << ": " << x << ", wanted " << y;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Packed, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

TEST(PackedText, EjectedFunctionsTakeBytes) {
  const std::string ir = R"(program copy
dim M
dim N
in X: e3m2[M, N]
out Y: e3m2[M, N]
grid (cdiv(M, 2), cdiv(N, 64))

%0 = load X{pid0*2, pid1*64} : e3m2[2,64]
store %0 to Y{pid0*2, pid1*64}
)";
  Guarded x(e3m2, {3, 70}), y(e3m2, {3, 70});
  const Ejected e = ejected_for(ir, {x, y}, "generic");
  EXPECT_NE(e.header.find("const uint8_t* X"), std::string::npos) << e.header;
  EXPECT_NE(e.header.find("other strides are multiples of 4"), std::string::npos) << e.header;
  EXPECT_NE(e.source.find("Y_dims[0] > 1 && Y_strides[0] % 4 != 0) return 2"), std::string::npos);
}

TEST(PackedInterpreter, RowsAreStreamsOfBits) {
  Tensors t(kSizes[0]);
  interpret(parse(moved(48)), t.inputs, t.outputs);
  t.check();
}

}  // namespace
}  // namespace tw::test
