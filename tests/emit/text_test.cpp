#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/emit/run_text.h"
#include "tests/support/golden.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

const char* const kScale = R"(program scale
dim N
in x: f32[N]
out y: f32[N]
grid (cdiv(N, 64))
%0 = load x{pid0*64} : f32[64]
%1 = full 2 : f32[1]
%twice.2 = mul %0, %1 : f32[64]
store %twice.2 to y{pid0*64}
)";

TEST(Text, ReadsLikeTheProgram) {
  Guarded x(f32, {100}), y(f32, {100});
  TW_EXPECT_GOLDEN("scale.avx2.txt", text_for(kScale, {x, y}, "avx2"));
}

TEST(Text, AStrideIsAVariableOnlyWhereItIsNotOne) {
  Guarded x(f32, {100}), y(f32, {100}), apart(f32, {100}, {2});
  EXPECT_EQ(text_for(kScale, {x, y}, "avx2").find("x__s0"), std::string::npos);
  const std::string text = text_for(kScale, {apart, y}, "avx2");
  EXPECT_NE(text.find("const i64 x__s0 = args->strides[0];"), std::string::npos) << text;
  EXPECT_NE(text.find("tw_gather_f32x8("), std::string::npos) << text;
}

TEST(Text, OnlyFunctionsInUseArePrinted) {
  Guarded x(f32, {100}), y(f32, {100});
  EXPECT_EQ(text_for(kScale, {x, y}, "avx2").find("tw_exp"), std::string::npos);
}

/// Rows of 1024 that are read, changed by `op` and divided by their sum.
std::string normalised(const std::string& op) {
  return "program rows\ndim M\ndim N\nin x: f32[M, N]\nout y: f32[M, N]\ngrid (M)\n\n"
         "%0 = load x{pid0, 0} : f32[1,1024]\n%1 = " +
         op +
         " %0 : f32[1,1024]\n%2 = reduce sum %1 axis 1 : f32[1,1]\n"
         "%3 = div %1, %2 : f32[1,1024]\nstore %3 to y{pid0, 0}\n";
}

constexpr int kLinks = 200;

/// y = y - y * y again and again, from %0; the last is %400.
std::string chain(const std::string& type) {
  std::string text;
  for (int k = 0; k < 2 * kLinks; k += 2) {
    text += fmt::format("%{1} = mul %{0}, %{0} : {3}\n%{2} = sub %{0}, %{1} : {3}\n", k, k + 1,
                        k + 2, type);
  }
  return text;
}

// An operand that is read twice makes 2^200 ways to the start of a chain.
TEST(Text, LongChainsThatReuseTheirValues) {
  const std::string signature =
      "program p\ndim N\ninout X: f32[N]\nout Y: f32[N]\ngrid (cdiv(N, 16))\n\n";
  const std::string load = "%0 = load X{pid0*16} : f32[16]\n", long_chain = chain("f32[16]");
  const std::string turned =
      "%500 = reshape %0 : f32[4,4]\n%501 = transpose %500 perm (1, 0) : f32[4,4]\n"
      "%502 = reshape %501 : f32[16]\n%503 = add %0, %502 : f32[16]\n";
  const std::string bodies[] = {
      load + long_chain + "store %400 to X{pid0*16}\n",
      load + turned + long_chain + "%504 = add %400, %503 : f32[16]\nstore %504 to X{pid0*16}\n",
      load + long_chain +
          "%500 = exp %400 : f32[16]\n%501 = reduce sum %500 axis 0 : f32[1]\n"
          "%502 = div %500, %501 : f32[16]\nstore %502 to X{pid0*16}\nstore %400 to Y{pid0*16}\n",
      "%500 = load X{pid0*16} : f32[16]\n"
      "%501 = for i0 in 0..N step 1 carry (%0 = %500) : f32[16] {\n" +
          long_chain + "yield %400\n}\nstore %501 to Y{pid0*16}\n",
  };
  const Guarded x(f32, {100}), y(f32, {100});
  for (const std::string& body : bodies) {
    EXPECT_FALSE(text_for(signature + body, {x, y}, "avx2").empty());
  }
}

TEST(Text, LongChainsAroundAContraction) {
  const std::string signature =
      "program p\ndim M\ndim N\ndim K\nin A: f32[M, K]\nin B: f32[K, N]\nout C: f32[M, N]\n"
      "grid (cdiv(M, 16), cdiv(N, 16))\n\n%500 = full 0 : f32[16,16]\n"
      "%501 = for i0 in 0..cdiv(K, 16) step 1 carry (%502 = %500) : f32[16,16] {\n";
  const std::string a = "load A{pid0*16, i0*16} : f32[16,16]\n";
  const std::string b = "load B{i0*16, pid1*16} : f32[16,16]\n";
  const std::string store = " to C{pid0*16, pid1*16}\n", links = chain("f32[16,16]");
  const std::string programs[] = {
      signature + "%0 = " + a + links + "%503 = " + b +
          "%504 = dot ieee %400, %503, %502 : f32[16,16]\nyield %504\n}\nstore %501" + store,
      signature + "%0 = " + b + links + "%503 = " + a +
          "%504 = dot ieee %503, %400, %502 : f32[16,16]\nyield %504\n}\nstore %501" + store,
      signature + "%503 = " + a + "%504 = " + b +
          "%505 = dot ieee %503, %504, %502 : f32[16,16]\nyield %505\n}\n"
          "%506 = full 1 : f32[16,16]\n%0 = add %501, %506 : f32[16,16]\n" +
          links + "store %400" + store};
  const Guarded x(f32, {32, 32});
  for (const std::string& program : programs) {
    const std::string text = text_for(program, {x, x, x}, "avx2");
    EXPECT_NE(text.find("packed_a"), std::string::npos) << "the sum is no contraction";
  }
}

/// The line before the only one that holds `what`.
std::string line_before(const std::string& text, const std::string& what) {
  const size_t at = text.find(what), end = text.rfind('\n', at), begin = text.rfind('\n', end - 1);
  EXPECT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.find(what, at + 1), std::string::npos) << text;
  return text.substr(begin + 1, end - begin - 1);
}

TEST(Text, TheNextInstanceIsFetchedWhileThisOneComputes) {
  const Tensor x = host_tensor(f32, {8192, 1024}), y = host_tensor(f32, {8192, 1024});
  const std::string slow = line_before(text_for(normalised("exp"), {x, y}, "avx2"), "prefetch(p");
  EXPECT_NE(slow.find("tw_store_f32x8(v_exp"), std::string::npos) << slow;
  const std::string fast = line_before(text_for(normalised("neg"), {x, y}, "avx2"), "prefetch(p");
  EXPECT_NE(fast.find("tw_stream_f32x8("), std::string::npos) << fast;
}

TEST(Text, EqualProgramsGiveEqualText) {
  Guarded x(f32, {100}), y(f32, {100});
  EXPECT_EQ(text_for(kScale, {x, y}, "avx512"), text_for(kScale, {x, y}, "avx512"));
  EXPECT_NE(text_for(kScale, {x, y}, "avx512"), text_for(kScale, {x, y}, "generic"));
}

/// A product with a bias, whose tensors and dims have these names.
std::string product(const std::vector<std::string>& names) {
  return fmt::format(R"(program gemm
dim {0}
dim {1}
dim {2}
in {3}: f32[{0}, {2}]
in {4}: f32[{2}, {1}]
in {5}: f32[{1}]
out {6}: f32[{0}, {1}]
grid (cdiv({0}, 16), cdiv({1}, 32))
%0 = full 0 : f32[16,32]
%5 = for i0 in 0..cdiv({2}, 8) step 1 carry (%1 = %0) : f32[16,32] {{
  %2 = load {3}{{pid0*16, i0*8}} : f32[16,8]
  %3 = load {4}{{i0*8, pid1*32}} : f32[8,32]
  %4 = dot ieee %2, %3, %1 : f32[16,32]
  yield %4
}}
%6 = load {5}{{pid1*32}} : f32[32]
%7 = reshape %6 : f32[1,32]
%8 = add %5, %7 : f32[16,32]
store %8 to {6}{{pid0*16, pid1*32}}
)",
                     names[0], names[1], names[2], names[3], names[4], names[5], names[6]);
}

std::string result(const std::vector<std::string>& names, const std::string& isa) {
  Guarded a(f32, {19, 21}), b(f32, {21, 45}), bias(f32, {45}), c(f32, {19, 45});
  a.fill([](int64_t i) { return static_cast<double>(i % 7 - 3); });
  b.fill([](int64_t i) { return static_cast<double>(i % 5 - 2); });
  bias.fill([](int64_t i) { return static_cast<double>(i); });
  run_text(product(names), {a, b, bias, c}, isa);
  EXPECT_EQ(c.damage(), "");
  return c.contents();
}

TEST(Text, MeansTheSameWhateverAProgramsNamesAre) {
  const std::vector<std::vector<std::string>> all = {
      {"m", "n", "k", "a", "b", "bias", "c"},
      {"rows", "cols", "depth", "packed_a", "packed_b", "sums", "waiting"},
      {"first", "last", "instance", "args", "ctx", "scratch", "task"},
      {"int", "new", "class", "default", "f32", "i64", "f32x8"},
      {"min", "max", "cdiv", "data", "tw_load", "TwArgs", "TW_INLINE"},
      {"k0", "kc", "row0", "row_end", "col_block", "small", "w"},
      {"A", "B", "C", "A", "B", "A_s0", "C"},
      {"x", "v", "l", "p", "p_2", "v_for", "j"},
  };
  const std::string isa = runnable_isas().back();
  const std::string wanted = result({"M", "N", "K", "A", "B", "bias", "C"}, isa);
  for (const auto& names : all) EXPECT_EQ(result(names, isa), wanted) << names[0];
}

}  // namespace
}  // namespace tw::test
