#include <cmath>
#include <limits>

#include "tests/cases/backends.h"

namespace tw::test {

using check::Guarded;

static constexpr double kInf = std::numeric_limits<double>::infinity();
static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// y[i] = cast(x[i]) in tiles of 64.
static Program cast_program(DType from, DType to, bool saturate = false) {
  Trace k("cast");
  Index N = k.dim("N");
  TensorRef X = k.input("X", from, {N}), Y = k.output("Y", to, {N});
  auto [i] = k.grid(cdiv(N, 64));
  CastOptions options;
  options.saturate = saturate;
  store(Y.tile({i}, {64}), cast(load(X.tile({i}, {64})), to, options));
  return k.finish();
}

/// Casts on every backend; elements must be equal, a NaN to a NaN.
static void expect_casts(const TensorView& x, DType to, const std::vector<double>& want,
                         bool saturate = false) {
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name + " " + name(x.dtype) + " to " + name(to));
    Guarded y(to, x.dims);
    backend.run(cast_program(x.dtype, to, saturate), {x}, {y});
    for (int64_t i = 0; i < y.view().count(); ++i) {
      const double got = get(y, i);
      if (std::isnan(want[i])) {
        EXPECT_TRUE(std::isnan(got)) << get(x, i) << " gave " << got;
      } else {
        EXPECT_EQ(got, want[i]) << "from " << get(x, i);
        EXPECT_EQ(std::signbit(got), std::signbit(want[i])) << "from " << get(x, i);
      }
    }
  }
}

/// A tensor whose elements have the bit patterns 0, 1, 2, ...
static Guarded all_patterns(DType t, DType bits_type) {
  Guarded x(t, {int64_t{1} << (8 * bytes(t))});
  TensorView raw = x.view();
  raw.dtype = bits_type;
  for (int64_t i = 0; i < raw.count(); ++i) set(raw, i, static_cast<double>(i));
  return x;
}

/// Nearest e5m2 value by distance in a list of all of them: ties to the even code.
static double nearest_e5m2(double x) {
  if (std::isnan(x) || std::isinf(x)) return x;
  int exponent = std::max(-14, x == 0 ? -14 : std::ilogb(x));
  const double step = std::ldexp(1, exponent - 2);
  const double rounded = std::nearbyint(std::abs(x) / step) * step;
  return std::copysign(rounded > 57344 ? kInf : rounded, x);
}

// Half and bfloat16 to e5m2: ties to even, over all patterns.
TEST(Cases, CAST_01) {
  for (DType t : {f16, bf16}) {
    expect_casts(tensor(t, {2}, {1.125, 1.375}), e5m2, {1.0, 1.5});
    Guarded x = all_patterns(t, u16);
    std::vector<double> want(x.view().count());
    for (int64_t i = 0; i < x.view().count(); ++i) want[i] = nearest_e5m2(get(x, i));
    expect_casts(x, e5m2, want);
  }
}

// Infinity stays infinity unless saturation is asked for.
TEST(Cases, CAST_02) {
  Guarded x = tensor(f16, {4}, {kInf, -kInf, kNan, 65504});
  expect_casts(x, e5m2, {kInf, -kInf, kNan, kInf});
  expect_casts(x, e5m2, {57344, -57344, kNan, 57344}, true);
}

// Every e4m3 byte decodes exactly; 0x7f and 0xff are NaN, 0x80 is -0.
TEST(Cases, CAST_03) {
  Guarded x = all_patterns(e4m3, u8);
  std::vector<double> want(256);
  for (int i = 0; i < 256; ++i) {
    const int exponent = i >> 3 & 15, mantissa = i & 7;
    const double magnitude =
        exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9);
    want[i] = (i & 127) == 127 ? kNan : i & 128 ? -magnitude : magnitude;
  }
  for (DType t : {f16, bf16, f32}) expect_casts(x, t, want);
}

// Integers round to bfloat16, they are not cut.
TEST(Cases, CAST_04) {
  expect_casts(tensor(i32, {4}, {257, 259, -259, 33000}), bf16, {256, 260, -260, 33024});
}

// Midpoints of 4-bit floats round to the even neighbour, with the sign kept.
TEST(Cases, CAST_05) {
  const std::vector<double> from = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0};
  const std::vector<double> to = {0, 1, 1, 2, 2, 4, 4};
  std::vector<double> x = from, want = to;
  for (const double v : from) x.push_back(-v);
  for (const double v : to) want.push_back(-v);
  for (const DType t : {f32, f16, f64}) expect_casts(tensor(t, {14}, x), e2m1, want);
}

// A NaN whose payload lies in the low bits stays a NaN, with its sign.
TEST(Cases, CAST_06) {
  Guarded x(f32, {3});
  const uint32_t bits[] = {0x7f800001, 0xff800001, 0x7fc00000};
  std::memcpy(x.view().data, bits, sizeof bits);
  expect_casts(x, bf16, {kNan, kNan, kNan});
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name);
    Guarded y(bf16, {3});
    backend.run(cast_program(f32, bf16), {x}, {y});
    const std::string got = y.contents();
    for (int i = 0; i < 3; ++i) EXPECT_EQ((got[2 * i + 1] & 0x80) != 0, i == 1) << i;
  }
}

// A rounding that the program asks for happens, whether its neighbours are fused with it or not.
TEST(Cases, NUM_01) {
  auto scale_of = [](const Tile& x) { return cast(448.f / cast(x, f32), bf16); };
  Trace fused("fused");
  TensorRef X = fused.input("X", bf16, {1}), Y = fused.output("Y", f32, {1});
  store(Y.tile({0}, {1}), cast(scale_of(load(X.tile({0}, {1}))), f32));
  const Program whole = fused.finish();

  Trace first("scale");
  TensorRef P = first.input("X", bf16, {1}), Q = first.output("Y", bf16, {1});
  store(Q.tile({0}, {1}), scale_of(load(P.tile({0}, {1}))));
  const Program scale = first.finish();

  Guarded x = tensor(bf16, {1}, {4.28125});
  for (const Backend& backend : backends()) {
    SCOPED_TRACE(backend.name);
    Guarded y(f32, {1}), s(bf16, {1}), z(f32, {1});
    backend.run(whole, {x}, {y});
    EXPECT_EQ(get(y, 0), 104.5);
    backend.run(scale, {x}, {s});
    backend.run(cast_program(bf16, f32), {s}, {z});
    EXPECT_EQ(get(z, 0), 104.5);
  }
}

}  // namespace tw::test
