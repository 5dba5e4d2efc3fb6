#include "tw/passes/simplify.h"

#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>

#include "tw/interp/interpreter.h"
#include "tw/ir/print.h"
#include "tw/passes/merge_equal.h"

#include "tests/passes/run_pass.h"
#include "tests/support/random_program.h"

namespace tw {
namespace {

using test::run_pass;

std::string simplified(const std::string& text) {
  const Program p = run_pass(simplify, parse(text));
  const std::string once = print(p);
  EXPECT_EQ(print(run_pass(simplify, p)), once) << "not idempotent";
  return once;
}

/// The ops of a program of one instance that stores the last of `lines` to C.
std::string body(const std::string& lines, const std::string& type = "f32[8]") {
  return "program p\ndim N multiple_of 64\nin A: f32[N]\nin B: f32[N]\nout C: " +
         type.substr(0, type.find('[')) + "[N]\ngrid (cdiv(N, 64))\n\n" + lines;
}

TEST(Simplify, IndexExpressionsUseWhatIsKnown) {
  EXPECT_EQ(simplified(body("for i0 in 0..cdiv(N, 64)*1 step 1 {\n"
                            "  %0 = load A{i0*64 + pid0 - pid0} : f32[8]\n"
                            "  store %0 to C{mod(i0*8, 8) + min(pid0, N)}\n}\n")),
            body("for i0 in 0..floordiv(N, 64) step 1 {\n"
                 "  %0 = load A{i0*64} : f32[8]\n"
                 "  store %0 to C{pid0}\n}\n"));
}

TEST(Simplify, MovesOfData) {
  EXPECT_EQ(simplified(body("%0 = load A{0} : f32[8]\n"
                            "%1 = reshape %0 : f32[2,4]\n"
                            "%2 = transpose %1 perm (1, 0) : f32[4,2]\n"
                            "%3 = transpose %2 perm (1, 0) : f32[2,4]\n"
                            "%4 = broadcast %3 : f32[2,4]\n"
                            "%5 = reshape %4 : f32[8]\n"
                            "%6 = full 2 : f32[1]\n"
                            "%7 = broadcast %6 : f32[8]\n"
                            "%8 = add %5, %7 : f32[8]\n"
                            "store %8 to C{0}\n")),
            body("%0 = load A{0} : f32[8]\n"
                 "%1 = full 2 : f32[8]\n"
                 "%2 = add %0, %1 : f32[8]\n"
                 "store %2 to C{0}\n"));
}

TEST(Simplify, OperandsStretchByThemselves) {
  EXPECT_EQ(simplified(body("%0 = load A{0} : f32[8]\n"
                            "%1 = load B{0} : f32[1]\n"
                            "%2 = broadcast %1 : f32[8]\n"
                            "%3 = mul %2, %0 : f32[8]\n"
                            "%4 = mul %2, %2 : f32[8]\n"
                            "%5 = sub %3, %4 : f32[8]\n"
                            "store %5 to C{0}\n")),
            body("%0 = load B{0} : f32[1]\n"
                 "%1 = load A{0} : f32[8]\n"
                 "%2 = mul %0, %1 : f32[8]\n"
                 "%3 = broadcast %0 : f32[8]\n"
                 "%4 = mul %3, %3 : f32[8]\n"
                 "%5 = sub %2, %4 : f32[8]\n"
                 "store %5 to C{0}\n"));
}

TEST(Simplify, CastsThatLoseNothingGo) {
  const auto through = [](const std::string& middle, const std::string& to) {
    return simplified(body("%0 = load A{0} : f32[8]\n%1 = cast %0 : bf16[8]\n%2 = cast %1 : " +
                               middle + "[8]\n%3 = cast %2 : " + to + "[8]\nstore %3 to C{0}\n",
                           to + "[8]"));
  };
  const std::string direct = "%1 = cast %0 : bf16[8]\n%2 = cast %1 : ";
  EXPECT_EQ(through("f32", "i32"),
            body("%0 = load A{0} : f32[8]\n" + direct + "i32[8]\nstore %2 to C{0}\n", "i32[8]"));
  EXPECT_NE(through("f16", "f32").find("f16"), std::string::npos);  // bf16 does not fit f16
  EXPECT_NE(through("i32", "u8").find("i32"), std::string::npos);
}

TEST(Simplify, IntegersThroughFloatsAreClampedSoTheyStay) {
  const std::string text = body(
      "%0 = iota axis 0 : i8[8]\n%1 = cast %0 : f32[8]\n%2 = cast %1 : u8[8]\nstore %2 to C{0}\n",
      "u8[8]");
  EXPECT_EQ(simplified(text), text);
}

TEST(Simplify, AResultKeepsItsShape) {
  const std::string text = body(
      "%0 = load A{0} : f32[1]\n%1 = full 1 : f32[8]\n"
      "%2 = mul %0, %1 : f32[8]\nstore %2 to C{0}\n");
  EXPECT_EQ(simplified(text), text);
}

// ---- each rule of the table, against the interpreter

// The text of a side of a rule as lines of ir; letters are values %x of their types.
struct Writer {
  std::string type, lines;
  int next = 10;

  std::string line(const std::string& what, const std::string& t) {
    lines += fmt::format("%{} = {} : {}[16]\n", next, what, t);
    return fmt::format("%{}", next++);
  }
  // Reads one node of `s` at `at`; t is the dtype its place asks for.
  std::string node(const std::string& s, size_t& at, const std::string& t) {
    while (s[at] == ' ') ++at;
    if (s[at] != '(') {
      const size_t end = std::min(s.find_first_of(" )", at), s.size());
      const std::string word = s.substr(at, end - at);
      at = end;
      if (std::isalpha(static_cast<unsigned char>(word[0])) != 0)
        return word == "m" ? "%1"
               : t == "b1" ? (word == "x" ? "%2" : "%3")
                           : (word == "x" ? "%4" : "%5");
      return line("full " + word, t);
    }
    const size_t end = s.find(' ', at);
    const std::string op = s.substr(at + 1, end - at - 1);
    at = end;
    const std::string operands = op == "eq" || op == "ne" ? "f32" : t;
    std::string in;
    for (int k = 0; s[at] != ')'; ++k)
      in += (k ? ", " : "") + node(s, at, op == "where" && k == 0 ? "b1" : operands);
    ++at;
    return line(op + " " + in, t);
  }
};

std::string rule_program(const std::string& side, const std::string& t) {
  Writer w{t, ""};
  size_t at = 0;
  const bool compares =
      side.find("(eq ") != std::string::npos || side.find("(ne ") != std::string::npos;
  const std::string data = compares || t == "b1" ? "f32" : t;
  const std::string result = w.node(side, at, t);
  return fmt::format(
      "program r\nin M: b1[16]\nin P: b1[16]\nin Q: b1[16]\nin X: {0}[16]\nin Y: {0}[16]\n"
      "out C: {1}[16]\ngrid (1)\n\n%1 = load M{{0}} : b1[16]\n%2 = load P{{0}} : b1[16]\n"
      "%3 = load Q{{0}} : b1[16]\n%4 = load X{{0}} : {0}[16]\n%5 = load Y{{0}} : {0}[16]\n"
      "{2}store {3} to C{{0}}\n",
      data, t, w.lines, result);
}

std::vector<Scalar> run(const Program& p) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {0,    -0.0,  1,   -1,    2.5,  -7,    127, -128,
                                      kInf, -kInf, NAN, 1e-45, 3e38, 0.125, 200, -3};
  std::vector<Tensor> inputs;
  for (const Param& a : p.params) {
    if (a.kind != ParamKind::in) continue;
    Tensor t = host_tensor(a.dtype, {16});
    for (int64_t i = 0; i < 16; ++i) {
      const size_t at = static_cast<size_t>(a.name == "Y" ? i * 7 + 3 : i) % 16;
      set(t, i, a.dtype == b1 ? static_cast<double>((i * (a.name[0] - 'K')) % 3 == 0) : values[at]);
    }
    inputs.push_back(t);
  }
  Tensor out = host_tensor(p.params.back().dtype, {16});
  return interpret(p, {inputs.begin(), inputs.end()}, {out}).outputs[0];
}

bool same_bits(const Scalar& a, const Scalar& b) {
  if (std::isnan(a.f) && std::isnan(b.f)) return true;
  return a.i == b.i && a.f == b.f && std::signbit(a.f) == std::signbit(b.f);
}

void expect_same(const std::vector<Scalar>& a, const std::vector<Scalar>& b,
                 const std::string& text) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(same_bits(a[i], b[i])) << i << "\n" << text;
}

TEST(Simplify, EachRewriteFiresAndKeepsEveryBit) {
  for (const Rewrite& r : rewrites()) {
    for (const char c : std::string(r.classes)) {
      const std::vector<std::string> dtypes =
          c == 'f'   ? std::vector<std::string>{"f16", "bf16", "f32", "f64"}
          : c == 's' ? std::vector<std::string>{"i8", "i32", "i64"}
          : c == 'u' ? std::vector<std::string>{"u8", "u32", "u64"}
                     : std::vector<std::string>{"b1"};
      for (const std::string& t : dtypes) {
        const std::string text = rule_program(r.from, t);
        Program before = parse(text, r.from);
        const Program p = run_pass(simplify, before);
        canonicalize(before);
        Program wanted = parse(rule_program(r.to, t), r.to);
        canonicalize(wanted);
        EXPECT_EQ(print(p), print(wanted)) << r.from << " of " << t;
        expect_same(run(before), run(p), text + print(p));
      }
    }
  }
}

// ---- random programs

TEST(Simplify, RandomProgramsKeepEveryBit) {
  int changed = 0;
  for (uint64_t seed = 5000; seed < 5120; ++seed) {
    const test::RandomProgram r = test::random_program(seed);
    Program p = r.program;
    canonicalize(p);
    const std::string canonical = print(p);
    const Program simple = run_pass(simplify, run_pass(merge_equal, p));
    changed += print(simple) != canonical;
    const test::Arguments args = test::arguments(r), again = test::arguments(r);
    const test::Arguments third = test::arguments(r);
    const auto want = interpret(r.program, args.inputs, args.outputs, r.dims).outputs;
    const auto plain = interpret(p, again.inputs, again.outputs, r.dims).outputs;
    const auto got = interpret(simple, third.inputs, third.outputs, r.dims).outputs;
    for (size_t k = 0; k < want.size(); ++k) {
      expect_same(want[k], plain[k], fmt::format("canonicalize, seed {}\n{}", seed, canonical));
      expect_same(want[k], got[k], fmt::format("seed {}\n{}\n{}", seed, canonical, print(simple)));
    }
  }
  EXPECT_GT(changed, 30);
}

}  // namespace
}  // namespace tw
