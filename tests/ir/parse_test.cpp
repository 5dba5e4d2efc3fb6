#include <gtest/gtest.h>
#include <random>

#include "tw/base/error.h"
#include "tw/ir/print.h"
#include "tw/ir/verify.h"

#include "tests/ir/corpus.h"
#include "tests/support/expect_error.h"

namespace tw {
namespace {

const std::string kHead = "program p\ndim N\nin X: f32[N, 8]\nout Y: f32[N, 8]\ngrid (N)\n\n";

struct Wrong {
  const char* body;   // after kHead, at line 7
  const char* error;  // part of the message
};

constexpr Wrong kWrong[] = {
    {"%0 = frob %1 : f32[1]", "p.tw:7: error: got 'frob', wanted an op"},
    {"%0 = neg %1 : f32[1]", "p.tw:7: error: %1 is used where its definition does not reach"},
    {"%0 = full 1", "p.tw:7: error: the line ends, wanted ':'"},
    {"%0 = full x : f32[1]", "got 'x', wanted a constant of f32"},
    {"%0 = full 1.5 : i32[1]", "got '1.5', wanted a constant of i32"},
    {"%0 = full 300 : u8[1]", "'full': 300 does not fit u8"},
    {"%0 = full 2 : b1[1]", "'full': 2 does not fit b1"},
    {"%0 = full 1 : f33[1]", "got 'f33[1]', wanted a dtype"},
    {"%0 = full 1 : f32[0]", "tile extents [0] must be at least 1, got 0"},
    {"%0 = full 1 : f32[65536,65536]", "tile f32[65536,65536] has more than 268435456 elements"},
    {"%0 = full 1 : f32[1,1,1,1,1,1,1,1,1]", "a tile of 9 axes, more than 8"},
    {"%0 = full 1 : f32[99999999999999999999]", "wanted an extent"},
    {"%0 = full 1 : f32[1]\n%0 = full 1 : f32[1]", "p.tw:8: error: %0 is defined twice"},
    {"%0, %1 = full 1 : f32[1]", "'full' has 1 results, not 2"},
    {"%a. = full 1 : f32[1]", "got '%a.', wanted a value such as %3 or %acc.3"},
    {"%0 = full 1 : f32[1] extra", "got 'extra', wanted the end of the line"},
    {"%0 = load Z{0, 0} : f32[1,1]", "there is no parameter 'Z'"},
    {"%0 = load X{0} : f32[1]", "the view has 1 coordinates, 'X' has 2 axes"},
    {"%0 = load X{0, 0} : f16[1,1]", "f16[1,1] does not fit a view of 'X', f32 of 2 axes"},
    {"%0 = load X{0, i0} : f32[1,1]", "unknown name 'i0'"},
    {"%0 = load X{0, pid1} : f32[1,1]", "unknown name 'pid1'"},
    {"%0 = load X{0, N +} : f32[1,1]", "p.tw:7: error: an integer, a name"},
    {"%0 = load X{0, 0} : f32[1,1]\nstore %0 to X{0, 0}", "'store': 'X' is read only"},
    {"%0 = load X{0, 0} : f32[1,1]\nstore %0 Y{0, 0}", "got 'Y{0,', wanted 'to <view>'"},
    {"%0 = iota axis 3 : i64[4]", "'iota': axis 3 of i64[4]"},
    {"%0 = iota axis 0 : f32[4]", "'iota': gives integers of whole bytes, not f32[4]"},
    {"%0 = index N : i64[2]", "'index': gives one integer, not i64[2]"},
    {"%0 = full 1 : f32[4]\n%1 = reduce mean %0 axis 0 : f32[1]", "got 'mean', wanted a combiner"},
    {"%0 = full 1 : f32[4]\n%1 = reduce sum %0 axis 0 : f32[4]", "result 0 has type f32[4]"},
    {"%0 = full 1 : f32[4]\n%1 = reduce sum %0 : f32[1]", "got ':', wanted 'axis <number>'"},
    {"%0 = full 1 : f32[4]\n%1 = cast %0 RX : f16[4]", "wanted a rounding, saturate or ':'"},
    {"%0 = full 1 : f32[4]\n%1 = cast %0 seed 3 : f16[4]", "wanted a rounding, saturate or ':'"},
    {"%0 = full 1 : f32[4]\n%1 = cast %0 RZ seed 3 : f16[4]", "only SR takes a seed"},
    {"%0 = full 1 : i32[4]\n%1 = cast %0 RZ : f32[4]", "cast of i32 to f32 with RZ: only casts"},
    {"%0 = full 1 : f32[4]\n%1 = add %0, %0 : f16[4]", "the operands give f32[4]"},
    {"%0 = full 1 : f32[4]\n%1 = add %0 : f32[4]", "'add' has 1 operands, not 2"},
    {"%0 = full 1 : f32[4]\n%1 = dot bf16x3 %0, %0, %0 : f32[4]", "wanted a precision"},
    {"%0 = full 1 : f32[4]\n%1 = transpose %0 (0) : f32[4]", "wanted 'perm (...)'"},
    {"for j in 0..4 step 1 {\n}", "got 'j', wanted a loop counter such as i0"},
    {"for i0 in 0 4 step 1 {\n}", "got '0 4 step 1 {', wanted an integer expression and then '..'"},
    {"for i0 in 0..4 {\n}", "got '4 {', wanted an integer expression and then 'step'"},
    {"for i0 in 0..4 step 0 {\n}", "'for': the step is not proved to be at least 1"},
    {"for i0 in 0..4 step N {\n}", "'for': the step is not proved to be at least 1"},
    {"for i0 in 0..4 step 1 {", "the line ends, wanted '}'"},
    {"for i0 in 0..4 step 1 {\nfor i0 in 0..4 step 1 {\n}\n}", "two loops have id 0"},
    {"if N {\n} else {\n}", "got 'N {', wanted an integer expression and then '<' or '=' or '!'"},
    {"if N = 4 {\n} else {\n}", "got '=', wanted one of < <= == !="},
    {"if N < 4 {\n}", "wanted '} else {'"},
    {"}", "'}' closes nothing"},
    {"yield %0", "%0 is used where its definition does not reach"},
    {"%0 = iota axis 0 : i32[4]\n%1 = lookup %0 (1, 2) : f32[4]",
     "got '(1,', wanted 'in (<constants>)'"},
    {"%0 = iota axis 0 : i32[4]\n%1 = lookup %0 in (1) : f32[4]",
     "'lookup' in a table of 1 entries, wanted 2 to 256"},
    {"%0 = iota axis 0 : i32[4]\n%1 = lookup %0 in (1, 300) : u8[4]",
     "'lookup': 300 does not fit u8"},
    {"%0 = iota axis 0 : i32[4]\n%1 = lookup %0 in (1, 0.5) : u8[4]",
     "got '0.5)', wanted a constant of u8"},
    {"%0 = full 1 : f32[4]\nassert %0 \"x\"", "'assert' needs a b1 tile, got f32[4]"},
    {"%0 = full 1 : b1[4]\nassert %0 \"x", "the line ends, wanted '\"'"},
    {"par axis 1 {\n}", "'par': axis 1 of a grid of 1 axes"},
};

TEST(Parse, SaysWhatIsWrongAndWhere) {
  for (const Wrong& w : kWrong)
    TW_EXPECT_ERROR(UserError, w.error, [&] { parse(kHead + w.body, "p.tw"); }) << w.body;
}

TEST(Parse, SaysWhatIsWrongInTheHeader) {
  const Wrong wrong[] = {
      {"", "h.tw:1: error: the line ends, wanted 'program <name>'"},
      {"kernel p", "got 'kernel', wanted 'program <name>'"},
      {"program 3", "got '3', wanted the program's name"},
      {"program p", "the text ends, wanted 'grid (...)'"},
      {"program p\ndim N\ndim N", "h.tw:3: error: two dims are named 'N'"},
      {"program p\ndim N multiple_of x", "got 'x', wanted the multiple"},
      {"program p\ndim N multiple_of 0\ngrid (1)", "dim 'N' is a multiple of 0"},
      {"program p\ndim i3\ngrid (1)", "dim 'i3' has a reserved name"},
      {"program p\nin X: f32[M]", "unknown name 'M'"},
      {"program p\nin X: f32[]\nin X: f32[]", "two parameters are named 'X'"},
      {"program p\ndim N\nin X: f32[N + 1]\ngrid (1)", "must be dims or constants >= 0"},
      {"program p\nthing X", "got 'thing', wanted dim, in, out, inout, workspace, scratch or grid"},
      {"program p\ngrid ()", "the grid has no axes, wanted 1 to 3"},
      {"program p\ngrid (1, 1, 1, 1)", "the grid has 4 axes, not 1 to 3"},
      {"program p\ngrid (pid0)", "unknown name 'pid0'"},
  };
  for (const Wrong& w : wrong)
    TW_EXPECT_ERROR(UserError, w.error, [&] { parse(w.body, "h.tw"); }) << w.body;
}

TEST(Parse, ACompareAndExchangeSaysWhatItExpects) {
  const std::string head = "program p\ninout X: i32[8]\ngrid (1)\n\n%0 = full 0 : i32[8]\n";
  TW_EXPECT_ERROR(UserError, "got 'to', wanted 'if <expected>'",
                  [&] { parse(head + "atomic cas relaxed device %0 to X{%0}\n"); });
}

TEST(Parse, AWhileCarriesItsCondition) {
  TW_EXPECT_ERROR(UserError, "got '{', wanted 'carry (<condition>, ...)'",
                  [] { parse(kHead + "while {\n}\n"); });
  TW_EXPECT_ERROR(UserError, "its first carried value must be a b1[], the condition", [] {
    parse(kHead + "%0 = full 0 : i32[]\n%2 = while carry (%1 = %0) : i32[] {\n  yield %1\n}\n");
  });
}

TEST(Parse, DimsMayBeNamedLikeWordsOfTheText) {
  const std::string text =
      "program p\ndim step\ndim carry\ndim in\ndim axis\ngrid (step)\n\n%0 = full 0 : f32[1]\n"
      "%2 = for i0 in step - carry..in + step step max(step, 1) carry (%1 = %0) : f32[1] {\n"
      "  yield %1\n}\nif step < axis {\n} else {\n}\n";
  EXPECT_EQ(print(parse(text)), text);
}

TEST(Parse, RefusesWhatWouldOverflowTheStack) {
  const std::string deep(5000, '(');
  TW_EXPECT_ERROR(UserError, "this integer expression is too long",
                  [&] { parse(kHead + "%0 = index " + deep + "1 : i64[1]"); });
  std::string nest = kHead;
  for (int i = 0; i < 2000; ++i) nest += "for i" + std::to_string(i) + " in 0..4 step 1 {\n";
  TW_EXPECT_ERROR(UserError, "regions nest too deeply", [&] { parse(nest); });
}

// A text with one to four random edits: characters, tokens, whole lines.
std::string mutate(std::string s, std::mt19937& random) {
  auto below = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  auto line = [&] {
    const size_t begin = s.rfind('\n', below(s.size())) + 1;
    return std::pair{begin, std::min(s.find('\n', begin), s.size() - 1) + 1 - begin};
  };
  const char* tokens[] = {"%0",  "%acc.1", "i0",     "pid0", "{",    "}",   "-1",  "f32[4]", "b1[]",
                          "inf", "(",      "yield ", "..",   "in ",  ",",   "[N]", "cast ",  "SR ",
                          "nan", "-",      "\n",     "99",   "par ", "1e9", "//",  " : "};
  for (size_t edits = 1 + below(3); edits > 0 && !s.empty(); --edits) {
    const size_t at = below(s.size());
    switch (below(9)) {
      case 0:
        s[at] = static_cast<char>(random());
        break;
      case 1:
        s.erase(at, 1 + below(8));
        break;
      case 2:
        s.insert(at, tokens[below(std::size(tokens))]);
        break;
      case 3: {
        const auto [begin, n] = line();
        s.erase(begin, n);
        break;
      }
      case 4: {
        const auto [begin, n] = line();
        s.insert(line().first, s.substr(begin, n));
        break;
      }
      case 5:
      case 6:
      case 7: {
        const char digit = static_cast<char>('0' + below(10));
        if (const size_t d = s.find_first_of("0123456789", at); d != std::string::npos)
          s[d] = digit;
        break;
      }
      default:
        s.resize(at);
    }
  }
  return s;
}

TEST(Parse, AnyTextGivesASoundProgramOrAUserError) {
  std::mt19937 random(20261130);
  int sound = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    for (const auto& [name, text] : test::corpus()) {
      const std::string wrong = mutate(text, random);
      try {
        const Program p = parse(wrong, name);
        verify(p, "parse");
        const std::string canonical = print(p);
        EXPECT_EQ(print(parse(canonical)), canonical) << wrong;
        ++sound;
      } catch (const UserError& e) {
        EXPECT_FALSE(e.message().empty());
        ++refused;
      }
    }
  }
  EXPECT_GT(sound, 200);
  EXPECT_GT(refused, 3000);
}

}  // namespace
}  // namespace tw
