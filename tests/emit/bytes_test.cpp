#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/emit/run_text.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

std::vector<std::string> isas_with_bytes() {
  std::vector<std::string> isas = runnable_isas();
  if (isas.back() == "avx512") isas.push_back(kNoVnni);
  return isas;
}

class Bytes : public testing::TestWithParam<std::string> {};

/// Any byte, the ends of the range among them.
double byte_at(DType t, int64_t i) {
  const int ends[] = {255, 0, 128, 127};
  const int byte = i % 7 == 3 ? ends[i / 7 % 4] : static_cast<int>(i * 89 + i / 5) % 256;
  return t == u8 ? byte : byte - 128;
}

/// Y[m, q] = sum of A[m, 4q + c] B[0, 4q + c] over c, of tiles of 4 rows; B is 1 when not
/// `product`.
std::string sums_of_four(DType a, DType b, bool product, int mask) {
  std::string text = fmt::format(
      "program four\ndim M\ndim K\nin A: {}[M, K]\nin B: {}[1, K]\nout Y: i32[M, 16]\n"
      "grid (cdiv(M, 4))\n\n%0 = load A{{pid0*4, 0}} : {}[4,64]\n",
      name(a), name(b), name(a));
  text += fmt::format("%1 = full {1} : {0}[1,1]\n%2 = and %0, %1 : {0}[4,64]\n", name(a), mask);
  text += fmt::format("%3 = cast %2 : i32[4,64]\n%4 = load B{{0, 0}} : {}[1,64]\n", name(b));
  text += "%5 = cast %4 : i32[1,64]\n";
  text += product ? "%6 = mul %3, %5 : i32[4,64]\n" : "%6 = mul %3, %3 : i32[4,64]\n";
  text += fmt::format("%7 = reshape {} : i32[4,16,4]\n", product ? "%6" : "%3");
  return text +
         "%8 = reduce sum %7 axis 2 : i32[4,16,1]\n%9 = reshape %8 : i32[4,16]\n"
         "store %9 to Y{pid0*4, 0}\n";
}

TEST_P(Bytes, SumsOfFourProductsAreExact) {
  for (const DType a : {u8, i8}) {
    for (const DType b : {u8, i8}) {
      for (const int64_t k : {64, 64 - 5}) {
        for (const auto& [product, mask] :
             {std::pair{true, -1}, std::pair{true, 127}, std::pair{false, -1}}) {
          const int kept = a == u8 ? mask & 255 : mask;
          Guarded x(a, {6, k}), y(b, {1, k}), z(i32, {6, 16});
          x.fill([&](int64_t i) { return byte_at(a, i); });
          y.fill([&](int64_t i) { return byte_at(b, i + 3); });
          run_text(sums_of_four(a, b, product, kept), {x, y, z}, GetParam());
          EXPECT_EQ(z.damage(), "");
          for (int64_t i = 0; i < 6 * 16; ++i) {
            int64_t want = 0;
            for (int64_t t = i % 16 * 4; t < std::min(k, i % 16 * 4 + 4); ++t) {
              const auto left = static_cast<int64_t>(get(x.view(), i / 16 * k + t)) & kept;
              want += left * (product ? static_cast<int64_t>(get(y.view(), t)) : 1);
            }
            ASSERT_EQ(get(z.view(), i), want) << name(a) << name(b) << mask << " at " << i;
          }
        }
      }
    }
  }
}

/// Y[n] = sum over k of X[k] W[n, k] in f32, tiles of `rows` and `cols`.
std::string row_products(DType t, int rows, int cols) {
  return fmt::format(R"(program rows
dim N
dim K
in X: f32[1, K]
in W: {0}[N, K]
out Y: f32[N, 1]
grid (cdiv(N, {1}))
%0 = full 0 : f32[{1},1]
%8 = for i0 in 0..cdiv(K, {2}) step 1 carry (%1 = %0) : f32[{1},1] {{
  %2 = load X{{0, i0*{2}}} : f32[1,{2}]
  %3 = load W{{pid0*{1}, i0*{2}}} : {0}[{1},{2}]
  %4 = cast %3 : f32[{1},{2}]
  %5 = mul %2, %4 : f32[{1},{2}]
  %6 = reduce sum %5 axis 1 : f32[{1},1]
  %7 = add %1, %6 : f32[{1},1]
  yield %7
}}
store %8 to Y{{pid0*{1}, 0}}
)",
                     name(t), rows, cols);
}

double integer_at(int64_t i) { return static_cast<double>(i * 7 % 11 - 5); }

TEST_P(Bytes, RowsInBlocksOfAnyShape) {
  for (const DType t : {i8, u8}) {
    for (const auto& [rows, cols] : {std::pair{8, 128}, std::pair{7, 64}, std::pair{4, 32}}) {
      for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 5},
                                 {8, 128},
                                 {9, 100},
                                 {22, 260},
                                 {4, 63},
                                 {0, 8},
                                 {3, 0}}) {
        Guarded x(f32, {1, k}), w(t, {n, k}, {k + 3, 1}), y(f32, {n, 1});
        x.fill(integer_at);
        w.fill([&](int64_t i) { return byte_at(t, i); });
        run_text(row_products(t, rows, cols), {x, w, y}, GetParam());
        EXPECT_EQ(y.damage(), "");
        for (int64_t i = 0; i < n; ++i) {
          double want = 0;
          for (int64_t j = 0; j < k; ++j) want += get(x.view(), j) * get(w.view(), i * k + j);
          ASSERT_EQ(get(y.view(), i), want) << name(t) << rows << " rows, N " << n << " K " << k;
        }
      }
    }
  }
}

/// Nibbles by groups: Y[n] = sum over groups of S[n, g] (sum over the group of X[k] (code - 3)),
/// with the inner sum in i32 of X i8 or in f32.
std::string groups_of_nibbles(int half, bool bytes) {
  const std::string type = bytes ? "i32" : "f32";
  std::string text = fmt::format(
      "program nibbles\ndim N\ndim K\ndim G\nin X: {0}[1, K]\nin W: u8[N, G, {1}]\n"
      "in S: f32[N, G]\nout Y: f32[N, 1]\ngrid (cdiv(N, 5))\n\n"
      "%0 = load X{{0, 0}} : {0}[1,{2}]\n%1 = reshape %0 : {0}[1,6,2,{1}]\n"
      "%2 = load W{{pid0*5, 0, 0}} : u8[5,6,{1}]\n%3 = reshape %2 : u8[5,6,1,{1}]\n"
      "%4 = full 15 : u8[1,1,1,1]\n%5 = and %3, %4 : u8[5,6,1,{1}]\n%6 = full 4 : u8[1,1,1,1]\n"
      "%7 = shr %3, %6 : u8[5,6,1,{1}]\n%8 = iota axis 2 : i64[1,1,2,1]\n"
      "%9 = full 1 : i64[1,1,1,1]\n%10 = lt %8, %9 : b1[1,1,2,1]\n"
      "%11 = where %10, %5, %7 : u8[5,6,2,{1}]\n%12 = load S{{pid0*5, 0}} : f32[5,6]\n",
      bytes ? "i8" : "f32", half, 12 * half);
  text += fmt::format("%13 = cast %11 : {0}[5,6,2,{1}]\n", type, half);
  if (!bytes) {
    return text + fmt::format(
                      "%14 = full 3 : f32[1,1,1,1]\n%15 = sub %13, %14 : f32[5,6,2,{0}]\n"
                      "%16 = mul %1, %15 : f32[5,6,2,{0}]\n"
                      "%17 = reduce sum %16 axis 2 : f32[5,6,1,{0}]\n"
                      "%18 = reshape %12 : f32[5,6,1,1]\n%19 = mul %17, %18 : f32[5,6,1,{0}]\n"
                      "%20 = reshape %19 : f32[5,{1}]\n%21 = reduce sum %20 axis 1 : f32[5,1]\n"
                      "store %21 to Y{{pid0*5, 0}}\n",
                      half, 6 * half);
  }
  return text + fmt::format(
                    "%14 = cast %1 : i32[1,6,2,{0}]\n%15 = mul %14, %13 : i32[5,6,2,{0}]\n"
                    "%16 = reshape %15 : i32[5,6,2,{1},4]\n%17 = reshape %14 : i32[1,6,2,{1},4]\n"
                    "%18 = reduce sum %16 axis 4 : i32[5,6,2,{1},1]\n"
                    "%19 = reduce sum %18 axis 2 : i32[5,6,1,{1},1]\n"
                    "%20 = reduce sum %17 axis 4 : i32[1,6,2,{1},1]\n"
                    "%21 = reduce sum %20 axis 2 : i32[1,6,1,{1},1]\n"
                    "%22 = full 3 : i32[1,1,1,1,1]\n%23 = mul %21, %22 : i32[1,6,1,{1},1]\n"
                    "%24 = sub %19, %23 : i32[5,6,1,{1},1]\n%25 = cast %24 : f32[5,6,1,{1},1]\n"
                    "%26 = reshape %12 : f32[5,6,1,1,1]\n%27 = mul %25, %26 : f32[5,6,1,{1},1]\n"
                    "%28 = reshape %27 : f32[5,{2}]\n%29 = reduce sum %28 axis 1 : f32[5,1]\n"
                    "store %29 to Y{{pid0*5, 0}}\n",
                    half, half / 4, 6 * half / 4);
}

TEST_P(Bytes, GroupsOfNibblesOfAnyLength) {
  for (const bool bytes : {false, true}) {
    for (const int half : {4, 16, 20, 64}) {
      // All groups, an end inside a group and at its half, more groups than K has elements for.
      for (const auto& [n, groups, k] : {std::array<int64_t, 3>{5, 6, 12 * half},
                                         {7, 4, 7 * half},
                                         {9, 5, 9 * half - 3},
                                         {4, 3, half + 1},
                                         {5, 6, 3 * half}}) {
        Guarded x(bytes ? i8 : f32, {1, k}), w(u8, {n, groups, half}), s(f32, {n, groups});
        Guarded y(f32, {n, 1});
        x.fill(integer_at);
        w.fill([](int64_t i) { return byte_at(u8, i); });
        s.fill([](int64_t i) { return static_cast<double>(i % 5) / 4 - 0.5; });
        run_text(groups_of_nibbles(half, bytes), {x, w, s, y}, GetParam(), {}, {}, "-Og");
        EXPECT_EQ(y.damage(), "");
        for (int64_t i = 0; i < n; ++i) {
          double want = 0;
          for (int64_t t = 0; t < std::min(k, groups * 2 * half); ++t) {
            const int64_t g = t / (2 * half), e = t % (2 * half);
            const int byte = static_cast<int>(get(w.view(), (i * groups + g) * half + e % half));
            const int code = e < half ? byte % 16 : byte / 16;
            want += get(x.view(), t) * (code - 3) * get(s.view(), i * groups + g);
          }
          ASSERT_EQ(get(y.view(), i), want)
              << bytes << " half " << half << " N " << n << " G " << groups << " K " << k;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Bytes, testing::ValuesIn(isas_with_bytes()), [](const auto& info) {
  return info.param == kNoVnni ? std::string("avx512_without_vnni") : info.param;
});

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(BytesText, EveryMachineHasItsInstruction) {
  Guarded x(i8, {1, 384}), w(u8, {5, 6, 32}), s(f32, {5, 6}), y(f32, {5, 1});
  const std::string ir = groups_of_nibbles(32, true);
  const auto text = [&](const std::string& isa) { return text_for(ir, {x, w, s, y}, isa); };
  EXPECT_TRUE(has(text("avx512"), "vpdpbusd"));
  EXPECT_FALSE(has(text(kNoVnni), "vpdpbusd"));
  for (const std::string& isa : {kNoVnni, std::string("avx2")}) {
    EXPECT_TRUE(has(text(isa), "pmaddubsw256"));
  }
  for (const char* isa : {"generic", "neon"}) EXPECT_FALSE(has(text(isa), "__builtin_ia32"));
}

TEST(BytesText, ShortGroupsFillARegisterTogether) {
  Guarded x(i8, {1, 192}), w(u8, {5, 6, 16}), s(f32, {5, 6}), y(f32, {5, 1});
  const std::string ir = groups_of_nibbles(16, true);
  EXPECT_TRUE(has(text_for(ir, {x, w, s, y}, "avx512"), "auto wide"));
  for (const char* isa : {"avx2", "generic", "neon"}) {
    EXPECT_FALSE(has(text_for(ir, {x, w, s, y}, isa), "auto wide")) << isa;
  }
}

TEST(BytesText, BlocksOfRowsFetchTheNext) {
  Guarded x(f32, {1, 128}), w(i8, {8, 128}), wide(f32, {8, 128}), y(f32, {8, 1});
  EXPECT_TRUE(has(text_for(row_products(i8, 8, 128), {x, w, y}, "avx2"), "__builtin_prefetch"));
  EXPECT_FALSE(
      has(text_for(row_products(f32, 8, 128), {x, wide, y}, "avx2"), "__builtin_prefetch"));
}

TEST(BytesText, EjectedOnesAskForTheirInstructions) {
  Guarded x(i8, {1, 384}), w(u8, {5, 6, 32}), s(f32, {5, 6}), y(f32, {5, 1});
  const Ejected e = ejected_for(groups_of_nibbles(32, true), {x, w, s, y}, "avx512");
  EXPECT_TRUE(has(e.source, "#pragma GCC target(\"arch=x86-64-v4,avx512vnni\")"));
  EXPECT_TRUE(has(e.source, "__builtin_cpu_supports(\"avx512vnni\")"));
}

}  // namespace
}  // namespace tw::test
