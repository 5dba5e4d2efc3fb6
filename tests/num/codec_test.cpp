#include "tw/num/codec.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "tests/num/reference.h"

namespace tw {
namespace {

using enum Rounding;

const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();
const DType kNarrow[] = {e4m3, e5m2, e3m2, e2m3, e2m1, f16, bf16};

double as_double(uint32_t f32_bits) { return std::bit_cast<float>(f32_bits); }

// Every f32 upper half with several lower ones, and around each tie and value of the line.
std::vector<double> values_to_round(const std::vector<double>& line) {
  std::vector<double> values;
  for (uint32_t high = 0; high < 0x10000; ++high)
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const double v = as_double(high << 16 | low);
      if (!std::isnan(v)) values.push_back(v);
    }
  for (size_t i = 0; i < line.size(); ++i) {
    const double next = i + 1 < line.size() ? line[i + 1] : line[i] + (line[i] - line[i - 1]);
    for (double v : {line[i], (line[i] + next) / 2})
      for (double w : {v, std::nextafter(v, kInf), std::nextafter(v, -kInf)}) {
        values.push_back(w);
        values.push_back(-w);
      }
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const double v = std::bit_cast<double>(random());
    if (!std::isnan(v)) values.push_back(v);
  }
  return values;
}

class Narrow : public testing::TestWithParam<DType> {};

TEST_P(Narrow, EveryFiniteCodeDecodesToItsValue) {
  const DType t = GetParam();
  const std::vector<double> line = test::number_line(t);
  const uint64_t sign = uint64_t{1} << (bits(t) - 1);
  for (uint64_t code = 0; code < line.size(); ++code) {
    EXPECT_EQ(decode(t, code), line[code]);
    EXPECT_EQ(decode(t, code | sign), -line[code]);
    EXPECT_TRUE(std::signbit(decode(t, code | sign)));
  }
  EXPECT_EQ(line.back(), largest(t));
}

TEST_P(Narrow, EveryOtherCodeIsInfinityOrNan) {
  const DType t = GetParam();
  const uint64_t sign = uint64_t{1} << (bits(t) - 1), first = test::number_line(t).size();
  for (uint64_t code = first; code < sign; ++code) {
    const bool infinity = code == first && t != e4m3;
    EXPECT_EQ(std::isinf(decode(t, code)), infinity);
    EXPECT_EQ(std::isnan(decode(t, code)), !infinity);
    EXPECT_EQ(std::signbit(decode(t, code)), false);
    EXPECT_EQ(std::signbit(decode(t, code | sign)), true);
  }
}

TEST_P(Narrow, EveryCodeComesBack) {
  const DType t = GetParam();
  for (uint64_t code = 0; code >> bits(t) == 0; ++code) {
    const double v = decode(t, code);
    const uint64_t quiet = t != e4m3 && std::isnan(v) ? 1 << (info(t).mantissa_bits - 1) : 0;
    for (Rounding r : {RN, RZ, RU, SR}) EXPECT_EQ(encode(t, v, r, false, ~0u), code | quiet);
  }
}

TEST_P(Narrow, RoundsToTheRightNeighbour) {
  const DType t = GetParam();
  const std::vector<double> line = test::number_line(t);
  for (double v : values_to_round(line))
    for (Rounding r : {RN, RZ, RU})
      for (bool saturate : {false, true})
        ASSERT_EQ(encode(t, v, r, saturate), test::rounded_by_search(t, line, v, r, saturate))
            << name(t) << " " << v << " rounding " << int(r) << " saturate " << saturate;
}

// SR goes away from zero exactly from the random number on that the distance says.
TEST_P(Narrow, StochasticRoundingHasItsThreshold) {
  const DType t = GetParam();
  const std::vector<double> line = test::number_line(t);
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    const size_t code = random() % (line.size() - 1);
    const double below = line[code], step = line[code + 1] - below;
    const uint32_t part = static_cast<uint32_t>(random());
    const double v = below + step * (part * 0x1p-32);  // exact: part adds 32 bits at most
    const double sign = random() & 1 ? -1 : 1;
    const uint64_t lower = encode(t, sign * below), upper = encode(t, sign * line[code + 1]);
    EXPECT_EQ(encode(t, sign * v, SR, false, 0), lower);
    EXPECT_EQ(encode(t, sign * v, SR, false, ~part), lower);
    EXPECT_EQ(encode(t, sign * v, SR, false, ~part + 1), part == 0 ? lower : upper);
  }
}

TEST_P(Narrow, StochasticRoundingIsUnbiased) {
  const DType t = GetParam();
  const double below = decode(t, encode(t, 1)), above = decode(t, encode(t, 1) + 1);
  const double v = below + 0.3 * (above - below);
  const int n = 40000;
  int ups = 0;
  for (int i = 0; i < n; ++i)
    ups += decode(t, encode(t, v, SR, false, philox(7, 0, i).word[0])) == above;
  const double deviation = std::sqrt(n * 0.3 * 0.7);
  EXPECT_LT(std::abs(ups - 0.3 * n), 4 * deviation);
}

INSTANTIATE_TEST_SUITE_P(Codec, Narrow, testing::ValuesIn(kNarrow),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST(Codec, FormatsWithoutNanTakeTheLargest) {
  for (DType t : {e3m2, e2m3, e2m1})
    for (double nan : {kNan, -kNan})
      for (Rounding r : {RN, RZ, RU, SR})
        EXPECT_EQ(decode(t, encode(t, nan, r)), largest(t)) << name(t);
  EXPECT_EQ(largest(e3m2), 28);
  EXPECT_EQ(largest(e2m3), 7.5);
  EXPECT_EQ(largest(e2m1), 6);
}

/// The power of two that a value becomes, found by walking the line of all of them; 0 for NaN.
double power_by_search(double v, Rounding r, bool saturate) {
  const double least = std::ldexp(1, -127), most = std::ldexp(1, 127);
  if (!(v >= 0)) return 0;
  double below = least;
  if (v <= least) return least;
  while (below < most && below * 2 <= v) below *= 2;
  const double above = below * 2;
  const bool up = r == RU ? v > below : r == RN && v - below >= above - v;
  const double chosen = up ? above : below;
  if (std::isinf(v) || chosen > most) return saturate ? most : 0;
  return chosen;
}

TEST(Codec, PowersOfTwo) {
  for (uint64_t code = 0; code < 255; ++code) {
    EXPECT_EQ(decode(e8m0, code), std::pow(2.0, static_cast<double>(code) - 127));
    for (Rounding r : {RN, RZ, RU, SR}) EXPECT_EQ(encode(e8m0, decode(e8m0, code), r), code);
  }
  EXPECT_TRUE(std::isnan(decode(e8m0, 255)));
  EXPECT_EQ(encode(e8m0, kNan), 255u);
  EXPECT_EQ(encode(e8m0, kNan, RN, true), 255u);
  std::vector<double> line;
  for (int code = 0; code < 255; ++code) line.push_back(std::pow(2.0, code - 127));
  for (double v : values_to_round(line))
    for (Rounding r : {RN, RZ, RU})
      for (bool saturate : {false, true}) {
        const double want = power_by_search(v, r, saturate);
        const double got = decode(e8m0, encode(e8m0, v, r, saturate));
        ASSERT_TRUE(want == 0 ? std::isnan(got) : got == want) << v << " gave " << got;
      }
  EXPECT_EQ(lowest(e8m0), std::ldexp(1, -127));
  EXPECT_EQ(largest(e8m0), std::ldexp(1, 127));
}

TEST(Codec, PowersOfTwoRoundStochastically) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t code = random() % 254;
    const auto part = static_cast<uint32_t>(random());
    const double v = std::ldexp(1 + part * 0x1p-32, static_cast<int>(code) - 127);
    EXPECT_EQ(encode(e8m0, v, SR, false, ~part), code);
    EXPECT_EQ(encode(e8m0, v, SR, false, ~part + 1), part == 0 ? code : code + 1);
  }
}

TEST(Codec, F32IsTheHardwareConversion) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 1000000; ++i) {
    const uint64_t bits = random();
    // Half of them near the range of f32, where a random exponent seldom falls.
    const double v = i % 2 ? std::bit_cast<double>(bits)
                           : std::ldexp(1 + (bits >> 12) * 0x1p-52, int(bits % 300) - 160);
    if (std::isnan(v)) continue;
    ASSERT_EQ(encode(f32, v), std::bit_cast<uint32_t>(static_cast<float>(v))) << v;
    ASSERT_EQ(encode(f64, v), std::bit_cast<uint64_t>(v));
    const uint32_t f = static_cast<uint32_t>(bits);
    const double got = decode(f32, f);
    ASSERT_TRUE(got == as_double(f) || (std::isnan(got) && std::isnan(as_double(f))));
  }
}

TEST(Codec, IntegersRoundOnce) {
  const int64_t tie_in_f32 = (int64_t{1} << 60) + (int64_t{1} << 36);  // halfway of two floats
  EXPECT_EQ(decode(f32, encode_signed(f32, tie_in_f32 + 1)), 0x1p60 + 0x1p37);
  EXPECT_EQ(decode(f32, encode(f32, static_cast<double>(tie_in_f32 + 1))), 0x1p60);
  std::mt19937_64 random(4);
  for (int i = 0; i < 1000000; ++i) {
    const int64_t v = static_cast<int64_t>(random()) >> (random() % 64);
    const uint64_t u = static_cast<uint64_t>(v);
    ASSERT_EQ(encode_signed(f32, v), std::bit_cast<uint32_t>(static_cast<float>(v)));
    ASSERT_EQ(encode_signed(f64, v), std::bit_cast<uint64_t>(static_cast<double>(v)));
    ASSERT_EQ(encode_unsigned(f32, u), std::bit_cast<uint32_t>(static_cast<float>(u)));
    ASSERT_EQ(encode_unsigned(f64, u), std::bit_cast<uint64_t>(static_cast<double>(u)));
  }
  EXPECT_EQ(encode_signed(f64, std::numeric_limits<int64_t>::min()),
            std::bit_cast<uint64_t>(-0x1p63));
  EXPECT_EQ(encode_signed(f16, 70000), 0x7c00u);
  EXPECT_EQ(encode_signed(f16, -70000, RN, true), 0xfbffu);
}

TEST(Codec, FloatToIntegerSaturatesAndTruncates) {
  EXPECT_EQ(encode_int(i8, 127.9), 127u);
  EXPECT_EQ(encode_int(i8, 300), 127u);
  EXPECT_EQ(encode_int(i8, -128.9), 0x80u);
  EXPECT_EQ(encode_int(i8, -1e30), 0x80u);
  EXPECT_EQ(encode_int(i8, -1.5), 0xffu);
  EXPECT_EQ(encode_int(u8, -3), 0u);
  EXPECT_EQ(encode_int(u8, 255.99), 255u);
  EXPECT_EQ(encode_int(u8, kInf), 255u);
  EXPECT_EQ(encode_int(i32, -kInf), 0x80000000u);
  EXPECT_EQ(encode_int(i32, kNan), 0u);
  EXPECT_EQ(encode_int(i64, 0x1p63), 0x7fffffffffffffffu);
  EXPECT_EQ(encode_int(i64, -0x1p63), 0x8000000000000000u);
  EXPECT_EQ(encode_int(i64, std::nextafter(0x1p63, 0)), 0x7ffffffffffffc00u);
  EXPECT_EQ(encode_int(u64, 0x1p64), ~uint64_t{0});
  EXPECT_EQ(encode_int(u64, 0x1p63), uint64_t{1} << 63);
  EXPECT_EQ(encode_int(i4, 7.9), 7u);
  EXPECT_EQ(encode_int(i4, -8.9), 8u);
  EXPECT_EQ(encode_int(i4, -100), 8u);
  EXPECT_EQ(encode_int(i4, -1), 15u);
  EXPECT_EQ(encode_int(u2, 9), 3u);
  EXPECT_EQ(encode_int(i1, -1), 1u);
  EXPECT_EQ(encode_int(i1, 1), 0u);
  EXPECT_EQ(encode_int(b1, -0.0), 0u);
  EXPECT_EQ(encode_int(b1, 0.5), 1u);
  EXPECT_EQ(encode_int(b1, kNan), 1u);
}

// The rows of reported bugs that concern formats, by their ids.

TEST(CastCases, CAST_01) {  // ties of e5m2 round to even
  EXPECT_EQ(decode(e5m2, encode(e5m2, 1.125)), 1.0);
  EXPECT_EQ(decode(e5m2, encode(e5m2, 1.375)), 1.5);
}

TEST(CastCases, CAST_02) {  // infinity saturates only when asked
  EXPECT_EQ(decode(e5m2, encode(e5m2, kInf)), kInf);
  EXPECT_EQ(decode(e5m2, encode(e5m2, -kInf)), -kInf);
  EXPECT_TRUE(std::isnan(decode(e5m2, encode(e5m2, kNan))));
  EXPECT_EQ(decode(e5m2, encode(e5m2, 65504)), kInf);
  EXPECT_EQ(decode(e5m2, encode(e5m2, kInf, RN, true)), 57344);
  EXPECT_EQ(decode(e5m2, encode(e5m2, -kInf, RN, true)), -57344);
  EXPECT_TRUE(std::isnan(decode(e5m2, encode(e5m2, kNan, RN, true))));
  EXPECT_EQ(decode(e5m2, encode(e5m2, 65504, RN, true)), 57344);
}

TEST(CastCases, CAST_03) {  // the NaN codes of e4m3, and -0
  for (uint64_t nan : {0x7f, 0xff}) {
    const double v = decode(e4m3, nan);
    EXPECT_TRUE(std::isnan(v));
    for (DType wide : {f16, bf16, f32}) EXPECT_TRUE(std::isnan(decode(wide, encode(wide, v))));
  }
  EXPECT_EQ(encode(f16, decode(e4m3, 0x80)), 0x8000u);
  for (uint64_t code = 0; code < 256; ++code)
    for (DType wide : {f16, bf16, f32}) {
      const double v = decode(e4m3, code);
      EXPECT_TRUE(std::isnan(v) || decode(wide, encode(wide, v)) == v);
    }
}

TEST(CastCases, CAST_04) {  // integers round to bf16 as floats do
  EXPECT_EQ(decode(bf16, encode_signed(bf16, 257)), 256);
  EXPECT_EQ(decode(bf16, encode_signed(bf16, 259)), 260);
  EXPECT_EQ(decode(bf16, encode_signed(bf16, -259)), -260);
  EXPECT_EQ(decode(bf16, encode_signed(bf16, 33000)), 33024);
}

TEST(CastCases, CAST_05) {  // midpoints of e2m1 round to even, not away from zero
  const double from[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0}, to[] = {0, 1, 1, 2, 2, 4, 4};
  for (size_t i = 0; i < std::size(from); ++i)
    for (double sign : {1.0, -1.0}) {
      const double got = decode(e2m1, encode(e2m1, sign * from[i]));
      EXPECT_EQ(got, sign * to[i]);
      EXPECT_EQ(std::signbit(got), sign < 0);
    }
}

TEST(CastCases, CAST_06) {  // a NaN whose payload is cut off stays a NaN, with its sign
  for (uint32_t bits : {0x7F800001u, 0xFF800001u, 0x7FC00000u}) {
    const double v = decode(bf16, encode(bf16, decode(f32, bits)));
    EXPECT_TRUE(std::isnan(v));
    EXPECT_EQ(std::signbit(v), bits >> 31 != 0);
  }
}

}  // namespace
}  // namespace tw
