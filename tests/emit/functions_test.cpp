#include <cmath>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>

#include "tw/num/codec.h"

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

/// Every interesting neighbourhood of f32: signs, subnormals, ends of ranges, a sweep of exponents.
std::vector<float> arguments() {
  std::vector<float> list{0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f};
  for (int e = -149; e < 128; ++e) {
    for (int k = 0; k < 97; ++k) {
      const float x = std::ldexp(1.0f + static_cast<float>(k) / 97, e);
      list.push_back(x);
      list.push_back(-x);
    }
  }
  for (int k = -110000; k < 95000; ++k) list.push_back(static_cast<float>(k) * 1e-3f);
  return list;
}

/// Distance in units of the last place of f32 at the reference (of subnormals near zero).
double ulps(float got, long double want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) == std::isnan(want) ? 0 : 1e9;
  const auto rounded = static_cast<float>(want);
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : 1e9;
  int exponent = 0;
  std::frexp(rounded, &exponent);
  const long double unit = std::ldexp(1.0L, std::max(exponent - 24, -149));
  return static_cast<double>(std::fabs((static_cast<long double>(got) - want) / unit));
}

struct Function {
  const char* op;
  double bound;  ///< as ops.def says
  long double (*reference)(long double);
};

class Functions : public testing::TestWithParam<std::string> {};

TEST_P(Functions, StayWithinTheirStatedUlps) {
  const Function list[] = {
      {"exp", 2, [](long double x) { return std::exp(x); }},
      {"exp2", 2, [](long double x) { return std::exp2(x); }},
      {"log", 2, [](long double x) { return std::log(x); }},
      {"tanh", 6, [](long double x) { return std::tanh(x); }},
      {"erf", 6, [](long double x) { return std::erf(x); }},
      {"rsqrt", 2, [](long double x) { return 1 / std::sqrt(x); }},
      {"sqrt", 0.5, [](long double x) { return std::sqrt(x); }},
      {"floor", 0, [](long double x) { return std::floor(x); }},
      {"ceil", 0, [](long double x) { return std::ceil(x); }},
      {"round", 0, [](long double x) { return std::nearbyint(x); }},
  };
  const std::vector<float> xs = arguments();
  const auto n = static_cast<int64_t>(xs.size());
  Guarded x(f32, {n});
  x.fill([&](int64_t i) { return xs[static_cast<size_t>(i)]; });
  for (const Function& f : list) {
    Guarded y(f32, {n});
    run_text(fmt::format("program f\ndim N\nin x: f32[N]\nout y: f32[N]\ngrid (cdiv(N, 1000))\n"
                         "%0 = load x{{pid0*1000}} : f32[1000]\n%1 = {} %0 : f32[1000]\n"
                         "store %1 to y{{pid0*1000}}\n",
                         f.op),
             {x, y}, GetParam());
    double worst = 0;
    float at = 0;
    for (int64_t i = 0; i < n; ++i) {
      const float a = xs[static_cast<size_t>(i)];
      const auto got = static_cast<float>(get(y.view(), i));
      const double u = ulps(got, f.reference(a));
      if (u > worst) worst = u, at = a;
      if (a == 0) {
        EXPECT_EQ(std::signbit(got), std::signbit(static_cast<float>(f.reference(a)))) << f.op;
      }
    }
    EXPECT_LE(worst, f.bound) << f.op << " at " << at;
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
