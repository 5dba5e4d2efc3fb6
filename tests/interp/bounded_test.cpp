#include "tw/interp/bounded.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "tests/interp/run_text.h"
#include "tests/support/random.h"

namespace tw::test {

namespace {

/// Magnitudes from subnormal to near overflow, and a bound from nothing to more than the value.
Scalar random_element(Random& r, DType t) {
  const double top = std::log2(largest(t));
  const double size = r.percent(70) ? r.between(-3, 3) : top * (2 * r.unit() - 1);
  double v = round_to(t, r.percent(20) ? r.between(-3, 3) : std::exp2(size) * r.normal());
  if (!std::isfinite(v)) v = 1;
  static const std::vector<double> relative{0, 0, 1e-7, 1e-3, 0.3, 2};
  return Scalar::of_float(v, std::fabs(v) * r.of(relative));
}

/// What some backend may hold where the interpreter holds s.
Scalar sample(Random& r, DType t, const Scalar& s) {
  if (s.bound == 0) return s;
  const double v = round_to(t, s.f + s.bound * (2 * r.unit() - 1));
  return Scalar::of_float(std::fabs(v - s.f) <= s.bound ? v : s.f);
}

bool holds(const Scalar& bounded, const Scalar& got) {
  if (bounded.undecided) return true;
  if (std::isnan(bounded.f) || std::isnan(got.f)) return std::isnan(bounded.f) && std::isnan(got.f);
  if (bounded.bound > 0) return std::fabs(bounded.f - got.f) <= bounded.bound;
  return bounded.f == got.f && bounded.i == got.i && std::signbit(bounded.f) == std::signbit(got.f);
}

const std::vector<DType> kFloats{f32, f32, f64, f16, bf16};

/// Runs `trial` (true: decided) and expects that enough trials were.
template <class F>
void expect_mostly_decided(int trials, F&& trial) {
  int decided = 0;
  for (int i = 0; i < trials; ++i) decided += trial() ? 1 : 0;
  EXPECT_GT(decided, trials / 4);
}

}  // namespace

TEST(Bounded, UnaryHoldsWhatABackendMayGive) {
  Random r(11);
  for (Opcode code :
       {Opcode::neg, Opcode::abs, Opcode::sqrt, Opcode::rsqrt, Opcode::exp, Opcode::exp2,
        Opcode::log, Opcode::sin, Opcode::cos, Opcode::tanh, Opcode::erf, Opcode::tanh_fast,
        Opcode::erf_fast, Opcode::floor, Opcode::ceil, Opcode::round})
    expect_mostly_decided(3000, [&] {
      const DType t = r.of(kFloats);
      const Scalar a = random_element(r, t), x = sample(r, t, a);
      const Scalar bounded = bounded_unary(code, t, a), got = exact_unary(code, t, x);
      EXPECT_TRUE(holds(bounded, got))
          << info(code).name << " " << name(t) << " of " << a.f << " +- " << a.bound << ", at "
          << x.f << " gave " << got.f << ", not " << bounded.f << " +- " << bounded.bound;
      return !bounded.undecided;
    });
}

TEST(Bounded, BinaryHoldsWhatABackendMayGive) {
  Random r(12);
  for (Opcode code :
       {Opcode::add, Opcode::sub, Opcode::mul, Opcode::div, Opcode::min, Opcode::max,
        Opcode::min_num, Opcode::max_num, Opcode::lt, Opcode::le, Opcode::eq, Opcode::ne})
    expect_mostly_decided(6000, [&] {
      const DType t = r.of(kFloats);
      const Scalar a = random_element(r, t), b = r.percent(10) ? a : random_element(r, t);
      const Scalar x = sample(r, t, a), y = sample(r, t, b);
      const Scalar bounded = bounded_binary(code, t, a, b, r.percent(30));
      const Scalar got = exact_binary(code, t, x, y);
      EXPECT_TRUE(holds(bounded, got))
          << info(code).name << " " << name(t) << " of " << a.f << " +- " << a.bound << ", " << b.f
          << " +- " << b.bound << " at " << x.f << ", " << y.f << " gave " << got.f << ", not "
          << bounded.f << " +- " << bounded.bound;
      return !bounded.undecided;
    });
}

TEST(Bounded, CastsHoldWhatABackendMayGive) {
  Random r(13);
  const std::vector<DType> to{f32, f64, f16, bf16, e4m3, e5m2, i8, u8, i32, i64, b1};
  expect_mostly_decided(20000, [&] {
    const DType t = r.of(kFloats), u = r.of(to);
    CastAttr how;
    if (is_float(u)) how = {static_cast<Rounding>(r.below(4)), r.percent(30), 0};
    const Scalar a = random_element(r, t), x = sample(r, t, a);
    const auto random = static_cast<uint32_t>(r.next());
    const Scalar bounded = bounded_cast(t, u, how, random, a);
    const Scalar got = exact_cast(t, u, how, random, x);
    EXPECT_TRUE(holds(bounded, got))
        << name(t) << " to " << name(u) << " of " << a.f << " +- " << a.bound << ", at " << x.f
        << " gave " << got.f << " " << got.i << ", not " << bounded.f << " +- " << bounded.bound;
    return !bounded.undecided;
  });
}

TEST(Bounded, SumsHoldInAnyOrder) {
  Random r(14);
  expect_mostly_decided(3000, [&] {
    const DType t = r.of(kFloats), c = compute_type(t);
    std::vector<Scalar> terms, sampled;
    for (int64_t n = r.between(1, 40); n > 0; --n) terms.push_back(random_element(r, t));
    for (const Scalar& s : terms) sampled.push_back(sample(r, t, s));
    for (size_t k = sampled.size(); k > 1; --k) std::swap(sampled[k - 1], sampled[r.below(k)]);
    Scalar got = sampled[0];
    for (size_t k = 1; k < sampled.size(); ++k) got = exact_binary(Opcode::add, c, got, sampled[k]);
    got = Scalar::of_float(round_to(t, got.f));
    const Scalar bounded = bounded_sum(t, terms);
    EXPECT_TRUE(holds(bounded, got)) << got.f << ", not " << bounded.f << " +- " << bounded.bound;
    return !bounded.undecided;
  });
}

TEST(Bounded, ProductsHoldInAnyOrder) {
  Random r(15);
  expect_mostly_decided(3000, [&] {
    const DType t = r.of(kFloats), c = compute_type(t);
    std::vector<Scalar> terms, sampled;
    for (int64_t n = r.between(1, 9); n > 0; --n) {
      Scalar s = Scalar::of_float(round_to(t, 2 * r.normal()));
      if (r.percent(40)) s.bound = std::fabs(s.f) * 1e-5;
      terms.push_back(s);
    }
    for (const Scalar& s : terms) sampled.push_back(sample(r, t, s));
    for (size_t k = sampled.size(); k > 1; --k) std::swap(sampled[k - 1], sampled[r.below(k)]);
    Scalar got = sampled[0];
    for (size_t k = 1; k < sampled.size(); ++k) got = exact_binary(Opcode::mul, c, got, sampled[k]);
    got = Scalar::of_float(round_to(t, got.f));
    const Scalar bounded = bounded_product(t, terms);
    EXPECT_TRUE(holds(bounded, got)) << got.f << ", not " << bounded.f << " +- " << bounded.bound;
    return !bounded.undecided;
  });
}

TEST(Bounded, DotsHoldContractedOrNot) {
  Random r(16);
  expect_mostly_decided(3000, [&] {
    std::vector<Scalar> a, b;
    for (int64_t n = r.between(0, 30); n > 0; --n) {
      a.push_back(Scalar::of_float(static_cast<float>(r.normal())));
      b.push_back(
          Scalar::of_float(static_cast<float>(r.percent(50) ? r.between(-2, 2) : r.normal())));
    }
    const Scalar acc = Scalar::of_float(static_cast<float>(r.normal()));
    float fused = static_cast<float>(acc.f), apart = fused;
    for (size_t k = a.size(); k-- > 0;) {
      const float x = static_cast<float>(a[k].f), y = static_cast<float>(b[k].f);
      fused = std::fma(x, y, fused);
      const float product = x * y;
      apart = apart + product;
    }
    const Scalar bounded = bounded_dot(f32, Precision::ieee, a, b, acc);
    EXPECT_TRUE(holds(bounded, Scalar::of_float(fused)));
    EXPECT_TRUE(holds(bounded, Scalar::of_float(apart)));
    return !bounded.undecided;
  });
}

/// The nearest number of 11 bits, none below 2^-136.
double in_11_bits(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double step = std::ldexp(1.0, std::max(std::ilogb(x) - 10, -136));
  return static_cast<float>(std::round(x / step) * step);
}

TEST(Bounded, DotsHoldEveryPrecision) {
  Random r(17);
  expect_mostly_decided(3000, [&] {
    std::vector<Scalar> a, b;
    const auto any = [&r] {
      const auto e = static_cast<int>(r.percent(20) ? r.between(-149, -100) : r.between(-4, 4));
      return static_cast<float>(std::ldexp(r.normal(), e));
    };
    double rounded = 0, parts = 0, exact = 0;
    for (int64_t n = r.between(1, 4); n > 0; --n) {
      const double x = any(), y = any();
      a.push_back(Scalar::of_float(x));
      b.push_back(Scalar::of_float(y));
      const double x_large = in_11_bits(x), y_large = in_11_bits(y);
      exact += x * y;
      rounded += x_large * y_large;
      parts +=
          x_large * y_large + x_large * in_11_bits(y - y_large) + y_large * in_11_bits(x - x_large);
    }
    const auto dot = [&](Precision p) { return bounded_dot(f32, p, a, b, Scalar::of_float(0)); };
    const Scalar tf32 = dot(Precision::tf32), tf32x3 = dot(Precision::tf32x3);
    for (const double sum : {exact, rounded})
      EXPECT_TRUE(holds(tf32, Scalar::of_float(static_cast<float>(sum))));
    for (const double sum : {exact, parts})
      EXPECT_TRUE(holds(tf32x3, Scalar::of_float(static_cast<float>(sum))));
    EXPECT_LE(dot(Precision::ieee).bound, tf32x3.bound);
    return !tf32.undecided;
  });
}

TEST(Bounded, PrecisionsAreExactWhereTheirBitsSuffice) {
  const auto dot = [](Precision p, double x, double y) {
    return bounded_dot(f32, p, std::vector{Scalar::of_float(x)}, std::vector{Scalar::of_float(y)},
                       Scalar::of_float(1));
  };
  for (const Precision p : {Precision::tf32, Precision::tf32x3}) {
    EXPECT_EQ(dot(p, 2047, -3).bound, 0);
    EXPECT_EQ(dot(p, 2049, 0).bound, 0);
    EXPECT_GT(dot(p, 2049, 1).bound, 0);
    EXPECT_TRUE(dot(p, 0x1p-140, std::numeric_limits<double>::infinity()).undecided);
  }
  const double huge = std::numeric_limits<float>::max();
  EXPECT_TRUE(dot(Precision::tf32, huge, 0.5).undecided);
  EXPECT_FALSE(dot(Precision::tf32x3, huge, 0.5).undecided);
}

TEST(Bounded, KnowsSumsThatNoOrderRounds) {
  std::vector<Scalar> terms;
  for (int i = 0; i < 100; ++i) terms.push_back(Scalar::of_float(i % 7 * 0.25));
  EXPECT_EQ(bounded_sum(f32, terms).bound, 0);
  terms.push_back(Scalar::of_float(0x1p24));
  EXPECT_GT(bounded_sum(f32, terms).bound, 0);
}

TEST(Bounded, MarksWhatMayFlip) {
  const Scalar one = Scalar::of_float(1, 1e-6);
  EXPECT_TRUE(bounded_binary(Opcode::lt, f32, one, Scalar::of_float(1), false).undecided);
  EXPECT_EQ(bounded_binary(Opcode::lt, f32, one, Scalar::of_float(1.1), false).i, 1);
  EXPECT_TRUE(bounded_unary(Opcode::floor, f32, one).undecided);
  EXPECT_TRUE(bounded_cast(f32, i32, {}, 0, one).undecided);
  EXPECT_TRUE(bounded_bitcast(f32, u32, one).undecided);
  EXPECT_TRUE(bounded_unary(Opcode::log, f32, Scalar::of_float(1e-9, 1e-6)).undecided);
  EXPECT_TRUE(bounded_where(Scalar::unknown(), one, one).undecided);
  const Scalar near_top = Scalar::of_float(largest(f32), 1e32);
  EXPECT_TRUE(bounded_binary(Opcode::add, f32, near_top, near_top, true).undecided);
}

TEST(Bounded, ContractionLeavesAProductOpen) {
  const std::string text = R"(program fma
in a: f32[4]
in b: f32[4]
out c: f32[4]
out d: f32[4]
grid (1)

%0 = load a{0} : f32[4]
%1 = load b{0} : f32[4]
%2 = mul %0, %1 : f32[4]
%3 = sub %2, %1 : f32[4]
store %3 to c{0}
%4 = mul %1, %1 : f32[4]
store %4 to d{0}
)";
  const Tensor a = tensor(f32, {4}, {1.1f, 0.3f, 7.7f, 1e-3f});
  const Tensor b = tensor(f32, {4}, {1.3f, 0.7f, 1.9f, 5.7f});
  Interpretation r;
  run_text(text, {a, b}, {{f32, {4}}, {f32, {4}}}, {InterpretMode::bounded, {}}, &r);
  for (int64_t i = 0; i < 4; ++i) {
    const float x = a.data<float>()[i], y = b.data<float>()[i];
    EXPECT_LE(std::fabs(r.outputs[0][i].f - std::fma(x, y, -y)), r.outputs[0][i].bound);
    const float product = x * y;
    EXPECT_LE(std::fabs(r.outputs[0][i].f - (product - y)), r.outputs[0][i].bound);
    EXPECT_GT(r.outputs[0][i].bound, 0);
    EXPECT_EQ(r.outputs[1][i].bound, 0);
  }
}

}  // namespace tw::test
