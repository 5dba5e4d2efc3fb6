#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <limits>

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

/// A lookup of one program: what indexes, the type of the entries, how many there are.
struct Lookup {
  const char* index;  ///< a value of kHead
  DType index_type, type;
  int entries;
  double (*value)(double byte, double wide);  ///< of the index, from elements of the inputs
};

double byte(double b, double) { return b; }
double low(double b, double) { return std::fmod(b, 16); }
double high(double b, double) { return std::floor(b / 16); }
double as_signed(double b, double) { return b < 128 ? b : b - 256; }
double wide(double, double w) { return w; }
double cut(double b, double) { return low(b, 0) < 8 ? low(b, 0) : low(b, 0) - 16; }

const Lookup kLookups[] = {
    {"%0", u8, f32, 16, byte},  {"%0", u8, u8, 16, byte},      {"%0", u8, f64, 256, byte},
    {"%2", u8, f32, 16, low},   {"%2", u8, i8, 16, low},       {"%3", u8, f32, 16, high},
    {"%3", u8, f16, 3, high},   {"%4", i8, i32, 5, as_signed}, {"%4", i8, i16, 200, as_signed},
    {"%5", i64, f32, 16, wide}, {"%5", i64, u32, 7, wide},     {"%5", i64, b1, 3, wide},
    {"%5", i64, i64, 2, wide},  {"%6", u64, u8, 200, wide},    {"%98", i8, f32, 16, cut},
    {"%98", i8, i64, 16, cut},
};

constexpr int64_t kCount = 300;

/// Entry i: other ones for every type, none of them 0, NaN and infinity in one table.
double entry(const Lookup& l, int i) {
  if (l.type == b1) return 1;
  if (l.type == f64 && i == 4) return std::numeric_limits<double>::quiet_NaN();
  if (l.type == f64 && i == 5) return -std::numeric_limits<double>::infinity();
  if (is_float(l.type)) return (i % 2 ? -1.25 : 0.75) * (i + 1);
  return is_signed_int(l.type) && i % 2 ? -1 - i % 100 : 1 + i % 250;
}

std::string text_of_all() {
  std::string ir = "program lookups\nin X: u8[300]\nin W: i64[300]\n", body;
  int n = 7, out = 0;
  for (const Lookup& l : kLookups) {
    ir += fmt::format("out Y{}: {}[300]\n", out, name(l.type));
    std::vector<std::string> entries;
    for (int i = 0; i < l.entries; ++i) entries.push_back(fmt::format("{}", entry(l, i)));
    body += fmt::format("%{} = lookup {} in ({}) : {}[300]\nstore %{} to Y{}{{0}}\n", n, l.index,
                        fmt::join(entries, ", "), name(l.type), n, out++);
    ++n;
  }
  return ir +
         "grid (1)\n\n%0 = load X{0} : u8[300]\n%1 = full 15 : u8[1]\n"
         "%2 = and %0, %1 : u8[300]\n%99 = full 4 : u8[1]\n%3 = shr %0, %99 : u8[300]\n"
         "%4 = bitcast %0 : i8[300]\n%5 = load W{0} : i64[300]\n"
         "%6 = bitcast %5 : u64[300]\n%97 = cast %2 : i4[300]\n%98 = cast %97 : i8[300]\n" +
         body;
}

class Lookups : public testing::TestWithParam<std::string> {};

/// Every kind of index and entry; negative ones and ones past the end give 0.
TEST_P(Lookups, GiveTheEntryOr0) {
  Guarded x(u8, {kCount}), w(i64, {kCount});
  x.fill([](int64_t i) { return static_cast<double>(i % 256); });
  const auto index = [](int64_t i) {
    constexpr double kFar[] = {-1, -256, 0x1p32, 0x1p32 + 1, -0x1p62, 0x1p62, 199, 200, 256};
    return i % 13 == 5 ? kFar[i / 13 % std::size(kFar)] : static_cast<double>(i % 19) - 1;
  };
  w.fill(index);
  std::vector<Guarded> outputs;
  for (const Lookup& l : kLookups) outputs.emplace_back(l.type, std::vector<int64_t>{kCount});
  std::vector<TensorView> all{x, w};
  all.insert(all.end(), outputs.begin(), outputs.end());
  run_text(text_of_all(), all, GetParam());
  for (size_t k = 0; k < outputs.size(); ++k) {
    const Lookup& l = kLookups[k];
    EXPECT_EQ(outputs[k].damage(), "");
    for (int64_t i = 0; i < kCount; ++i) {
      const double at = l.value(static_cast<double>(i % 256), index(i));
      const double want = at < 0 || at >= l.entries ? 0 : entry(l, static_cast<int>(at));
      const double got = get(outputs[k].view(), i);
      ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
          << "output " << k << " at index " << at << ": " << got << ", wanted " << want;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Lookups, testing::ValuesIn(runnable_isas()),
                         [](const auto& info) { return info.param; });

/// A program that maps the low bits of bytes to `type` in a table of 16.
std::string text_with(const char* type, const char* index, const std::string& isa) {
  const std::string ir = fmt::format(
      "program p\nin X: u8[64]\nout Y: {0}[64]\ngrid (1)\n\n%0 = load X{{0}} : u8[64]\n"
      "%1 = full 15 : u8[1]\n%2 = and %0, %1 : u8[64]\n"
      "%3 = lookup {1} in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16) : {0}[64]\n"
      "store %3 to Y{{0}}\n",
      type, index);
  const Guarded x(u8, {64}), y(*dtype_named(type), {64});
  return text_for(ir, {x, y}, isa);
}

TEST(LookupText, SixteenEntriesArePermutedInARegister) {
  const auto holds = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(holds(text_with("f32", "%2", "avx512"), "permvarsf512"));
  EXPECT_TRUE(holds(text_with("i32", "%2", "avx512"), "permvarsf512"));
  EXPECT_TRUE(holds(text_with("f32", "%2", "avx2"), "permvarsf256"));
  EXPECT_TRUE(holds(text_with("u8", "%2", "avx2"), "pshufb"));
  EXPECT_TRUE(holds(text_with("f32", "%2", "neon"), "table[number[l] & 15]"));
}

TEST(LookupText, WhatIsKnownToLieInTheTableIsNotChecked) {
  for (const char* isa : {"avx2", "avx512", "neon"}) {
    const std::string known = text_with("i32", "%2", isa), open = text_with("i32", "%0", isa);
    EXPECT_EQ(known.find("< 16"), std::string::npos) << isa;
    EXPECT_NE(open.find("< 16"), std::string::npos) << isa;
  }
}

}  // namespace
}  // namespace tw::test
