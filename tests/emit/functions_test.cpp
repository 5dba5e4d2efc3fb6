#include <cmath>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>
#include <numbers>

#include "tw/check/bound.h"
#include "tw/num/codec.h"

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

/// Every interesting neighbourhood of a float type: signs, subnormals, ends of ranges, a sweep of
/// exponents; all values of a short type. Of f32 also what lies nearest to multiples of pi/2, where
/// sines and cosines vanish, and both sides of where their reduction changes.
std::vector<double> arguments(DType t) {
  std::vector<double> list;
  if (bytes(t) == 2) {
    for (uint64_t bits = 0; bits < 1 << 16; ++bits) list.push_back(decode(t, bits));
    return list;
  }
  list = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.0, -1.0};
  const auto add = [&](double x) {
    for (const double y : {x, -x}) list.push_back(t == f32 ? static_cast<float>(y) : y);
  };
  const int lowest_exponent = t == f32 ? -149 : -1074, highest = t == f32 ? 127 : 1023;
  const int steps = t == f32 ? 97 : 19;
  for (int e = lowest_exponent; e <= highest; ++e) {
    for (int k = 0; k < steps; ++k) add(std::ldexp(1 + static_cast<double>(k) / steps, e));
  }
  for (int k = 0; k < 110000; ++k) add(k * 1e-3);
  for (int k = 1; k < 90000; k += 7) add(k * std::numbers::pi / 2);
  for (int e = 17; e <= highest; ++e) add(std::round(std::ldexp(0.7, e)) * std::numbers::pi / 2);
  for (int k = -50; k < 50; ++k) add(131072 + k / 64.0);
  return list;
}

/// The nearest value of type t.
double nearest(DType t, long double x) {
  if (t == f64) return static_cast<double>(x);
  if (t == f32) return static_cast<float>(x);
  return decode(t, encode(t, static_cast<double>(x)));
}

/// Distance in units of the last place of t at the reference (of subnormals near zero).
double ulps(DType t, double got, long double want) {
  const double rounded = nearest(t, want);
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) == std::isnan(want) ? 0 : 1e9;
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : 1e9;
  return static_cast<double>(std::fabs(got - want) / check::ulp(t, rounded));
}

struct Function {
  Opcode code;
  long double (*reference)(long double);
  bool exact = false;  ///< no rounding at all
};

const Function kFunctions[] = {
    {Opcode::exp, [](long double x) { return std::exp(x); }},
    {Opcode::exp2, [](long double x) { return std::exp2(x); }},
    {Opcode::log, [](long double x) { return std::log(x); }},
    {Opcode::sin, [](long double x) { return std::sin(x); }},
    {Opcode::cos, [](long double x) { return std::cos(x); }},
    {Opcode::tanh, [](long double x) { return std::tanh(x); }},
    {Opcode::erf, [](long double x) { return std::erf(x); }},
    {Opcode::tanh_fast, [](long double x) { return std::tanh(x); }},
    {Opcode::erf_fast, [](long double x) { return std::erf(x); }},
    {Opcode::rsqrt, [](long double x) { return 1 / std::sqrt(x); }},
    {Opcode::sqrt, [](long double x) { return std::sqrt(x); }},
    {Opcode::floor, [](long double x) { return std::floor(x); }, true},
    {Opcode::ceil, [](long double x) { return std::ceil(x); }, true},
    {Opcode::round, [](long double x) { return std::nearbyint(x); }, true},
};

class Functions : public testing::TestWithParam<std::string> {};

void expect_within(const Function& f, DType t, const std::vector<double>& x, const TensorView& y) {
  double worst = 0, at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double got = get(y, static_cast<int64_t>(i));
    const long double want = f.reference(x[i]);
    const double u = ulps(t, got, want);
    if (u > worst) worst = u, at = x[i];
    if (x[i] == 0) {
      EXPECT_EQ(std::signbit(got), std::signbit(want)) << info(f.code).name;
    }
  }
  const double stated = stated_ulps(f.code, t), bound = stated > 0 ? stated : 0.5;
  EXPECT_LE(worst, f.exact ? 0 : bound) << info(f.code).name << " of " << name(t) << " " << at;
}

/// All functions of elements of type t, in one program of tiles of that many.
void expect_all_within(DType t, const std::vector<double>& xs, int tile, const std::string& isa) {
  const auto n = static_cast<int64_t>(xs.size());
  std::deque<Guarded> tensors;
  tensors.emplace_back(t, std::vector<int64_t>{n});
  tensors[0].fill([&](int64_t i) { return xs[static_cast<size_t>(i)]; });
  std::string outputs, ops;
  for (const Function& f : kFunctions) {
    const size_t k = tensors.size();
    outputs += fmt::format("out y{}: {}[N]\n", k, name(t));
    ops += fmt::format("%{0} = {1} %0 : {2}[{3}]\nstore %{0} to y{0}{{pid0*{3}}}\n", k,
                       info(f.code).name, name(t), tile);
    tensors.emplace_back(t, std::vector<int64_t>{n});
  }
  run_text(fmt::format("program f\ndim N\nin x: {0}[N]\n{1}grid (cdiv(N, {3}))\n"
                       "%0 = load x{{pid0*{3}}} : {0}[{3}]\n{2}",
                       name(t), outputs, ops, tile),
           {tensors.begin(), tensors.end()}, isa);
  for (size_t k = 1; k < tensors.size(); ++k)
    expect_within(kFunctions[k - 1], t, xs, tensors[k].view());
}

TEST_P(Functions, StayWithinTheirStatedUlps) {
  for (const DType t : {f32, f64, f16, bf16}) {
    SCOPED_TRACE(name(t));
    expect_all_within(t, arguments(t), 1000, GetParam());
  }
}

/// Few lanes, and one, take other texts of the same functions.
TEST_P(Functions, OfFewLanesStayWithinTheirStatedUlps) {
  const std::vector<double> xs{0.25, -2.5, 1e6, INFINITY, 90, -0x1.8p+127, 0x1p-140, -0.0, NAN};
  for (const int tile : {1, 2, 3}) {
    SCOPED_TRACE(tile);
    expect_all_within(f32, xs, tile, GetParam());
  }
}

/// g++ 12 at -O2 makes masks, -1, of two lanes that it sees to be 0 or 1.
TEST_P(Functions, QuotientsOfEqualLanes) {
  const int64_t n = 21;
  for (const DType t : {i8, i16, i32, i64, u8, u16, u32, u64}) {
    for (const int tile : {2, 3, 4, 21}) {
      Guarded x(t, {n}), quotient(t, {n}), rest(t, {n});
      x.fill([](int64_t i) { return static_cast<double>(i % 3); });
      run_text(fmt::format("program f\ndim N\nin x: {0}[N]\nout q: {0}[N]\nout r: {0}[N]\n"
                           "grid (cdiv(N, {1}))\n\n%0 = load x{{pid0*{1}}} : {0}[{1}]\n"
                           "%1 = cast %0 : b1[{1}]\n%2 = cast %1 : {0}[{1}]\n"
                           "%3 = div %2, %2 : {0}[{1}]\n%4 = rem %0, %2 : {0}[{1}]\n"
                           "store %3 to q{{pid0*{1}}}\nstore %4 to r{{pid0*{1}}}\n",
                           name(t), tile),
               {x, quotient, rest}, GetParam());
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(get(quotient.view(), i), i % 3 != 0) << name(t) << " in tiles of " << tile;
        EXPECT_EQ(get(rest.view(), i), 0) << name(t) << " in tiles of " << tile;
      }
    }
  }
}

/// g++ 12 at -O2 makes trunc(x), -0 for small negative x, of an integer that becomes a float again.
TEST_P(Functions, IntegersHaveNoNegativeZero) {
  const int64_t n = 24;
  for (const auto& [t, integer] : {std::pair{f32, i32}, {f32, i8}, {f64, i64}, {f16, i16}}) {
    for (const int tile : {1, 4, 24}) {
      Guarded x(t, {n}), y(t, {n});
      x.fill([](int64_t i) { return -static_cast<double>(i) / 16; });
      run_text(fmt::format("program f\ndim N\nin x: {0}[N]\nout y: {0}[N]\n"
                           "grid (cdiv(N, {1}))\n\n%0 = load x{{pid0*{1}}} : {0}[{1}]\n"
                           "%1 = cast %0 : {2}[{1}]\n%2 = cast %1 : {0}[{1}]\n"
                           "store %2 to y{{pid0*{1}}}\n",
                           name(t), tile, name(integer)),
               {x, y}, GetParam());
      for (int64_t i = 0; i < 16; ++i)
        EXPECT_FALSE(std::signbit(get(y.view(), i)))
            << name(t) << " as " << name(integer) << " in tiles of " << tile << ", " << i;
    }
  }
}

/// A float type's NaNs of either sign: all fraction bits, the quiet one, and the lowest one, which
/// no shorter type has.
std::vector<uint64_t> nans(DType t) {
  const uint64_t sign = uint64_t{1} << (8 * bytes(t) - 1);
  std::vector<uint64_t> list;
  for (const uint64_t positive : {sign - 1, encode(t, NAN), encode(t, INFINITY) + 1}) {
    if (t == e4m3 && positive != sign - 1) continue;
    list.push_back(positive);
    list.push_back(positive | sign);
  }
  return list;
}

/// The bits of element i of a contiguous tensor.
uint64_t bits_of(const TensorView& t, size_t i) {
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(t.data) + i * bytes(t.dtype), bytes(t.dtype));
  return bits;
}

TEST_P(Functions, CastsKeepEveryNan) {
  const std::vector<DType> floats = {f64, f32, f16, bf16, e5m2, e4m3};
  const char* const ways[] = {"", " saturate", " RZ", " RU saturate", " SR seed 7"};
  for (const DType from : floats) {
    const std::vector<uint64_t> given = nans(from);
    const auto n = static_cast<int64_t>(given.size());
    std::string params, body;
    std::vector<std::string> names;
    std::deque<Guarded> tensors;
    tensors.emplace_back(from, std::vector<int64_t>{n});
    char* const data = static_cast<char*>(tensors[0].view().data);
    for (size_t i = 0; i < given.size(); ++i)
      std::memcpy(data + i * bytes(from), &given[i], bytes(from));
    for (const DType to : floats) {
      if (to == from) continue;
      for (const char* way : ways) {
        const size_t k = names.size();
        names.push_back(fmt::format("{} to {}{}", name(from), name(to), way));
        params += fmt::format("out y{}: {}[N]\n", k, name(to));
        body += fmt::format("%{} = cast %0{} : {}[4]\nstore %{} to y{}{{pid0*4}}\n", k + 1, way,
                            name(to), k + 1, k);
        tensors.emplace_back(to, std::vector<int64_t>{n});
      }
    }
    run_text(fmt::format("program f\ndim N\nin x: {0}[N]\n{1}grid (cdiv(N, 4))\n"
                         "%0 = load x{{pid0*4}} : {0}[4]\n{2}",
                         name(from), params, body),
             {tensors.begin(), tensors.end()}, GetParam());
    for (size_t k = 0; k < names.size(); ++k) {
      const TensorView y = tensors[k + 1];
      for (size_t i = 0; i < given.size(); ++i) {
        const double got = decode(y.dtype, bits_of(y, i));
        EXPECT_TRUE(std::isnan(got)) << names[k] << fmt::format(" of {:#x} gave {}", given[i], got);
        EXPECT_EQ(std::signbit(got), i % 2 == 1) << names[k];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Functions, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tw::test
