#include <algorithm>
#include <fstream>
#include <gmock/gmock.h>
#include <sstream>

#include "tw/base/error.h"
#include "tw/interp/interpreter.h"
#include "tw/jit/kernel.h"

#include "tests/jit/scale.h"
#include "tests/support/expect_error.h"

// Checks and prints of programs, on the CPU and in the interpreter.
namespace tw::test {
namespace {

using testing::ElementsAre;

/// y = x / d in 3 x 2 instances of 2 x 4 elements; x is checked to be at least `least`, a scalar
/// too.
Program divided(int least, const char* message = "x is large enough") {
  return parse(fmt::format(R"(program divided
in x: i32[5, 8]
in d: i32[5, 8]
out y: i32[5, 8]
grid (3, 2)
%0 = load x{{pid0*2, pid1*4}} pad 9 : i32[2,4] // k.cpp:3
%1 = full {} : i32[1,1]
%2 = le %1, %0 : b1[2,4]
assert %2 "{}" // k.cpp:7
%3 = load d{{pid0*2, pid1*4}} pad 1 : i32[2,4]
%4 = div %0, %3 : i32[2,4] // k.cpp:9
%5 = slice %2 at (0, 0) : b1[1,1]
assert %5 "and the first" // k.cpp:10
store %4 to y{{pid0*2, pid1*4}}
)",
                           least, message));
}

struct Example {
  Tensor x = host_tensor(i32, {5, 8}), d = host_tensor(i32, {5, 8}), y = host_tensor(i32, {5, 8});
  Example() {
    for (int64_t i = 0; i < 40; ++i) set(x, i, static_cast<double>(i)), set(d, i, 2);
  }
};

using Launcher = std::function<void(const Program&, const Example&, bool checked)>;

void on_cpu(const Program& p, const Example& t, bool checked) {
  compile(p, Device::open("cpu:0"), {.checked = checked})({t.x, t.d}, {t.y});
}
void by_interpreter(const Program& p, const Example& t, bool checked) {
  for (const InterpretMode mode : {InterpretMode::bounded, InterpretMode::exact})
    interpret(p, {t.x, t.d}, {t.y}, {}, {.mode = mode, .checked = checked});
}

TEST(Checks, FailAtTheirLineAndElement) {
  const TempCache cache;
  for (const Launcher& run : {Launcher(on_cpu), Launcher(by_interpreter)}) {
    Example t;
    run(divided(0), t, true);
    EXPECT_EQ(get(t.y, 39), 19);
    set(t.x, 3 * 8 + 6, -1);  // element [1, 2] of instance (1, 1)
    TW_EXPECT_ERROR(UserError,
                    "k.cpp:7: error: check failed: x is large enough, at element [1, 2] of "
                    "instance (1, 1)",
                    [&] { run(divided(0), t, true); });
    set(t.x, 0, -1);
    TW_EXPECT_ERROR(UserError, "at element [0, 0] of instance (0, 0)",
                    [&] { run(divided(0), t, true); });
    run(divided(0), t, false);
    EXPECT_EQ(get(t.y, 39), 19) << "not part of other launches";
  }
}

/// What a check guards may not end.
TEST(Checks, AnInstanceEndsWhereItFails) {
  const TempCache cache;
  const Program p = parse(R"(program guarded
in S: i32[8]
out Y: i32[8]
grid (1)
%0 = load S{0} : i32[8]
%1 = full 0 : i32[8]
%2 = lt %1, %0 : b1[8]
assert %2 "steps are positive" // k.cpp:3
%3 = full 1 : b1[]
%4 = full 100 : i32[8]
%11, %12 = while carry (%5 = %3, %6 = %1) : b1[], i32[8] {
  %7 = add %6, %0 : i32[8]
  %8 = lt %7, %4 : b1[8]
  %9 = reduce or %8 axis 0 : b1[1]
  %10 = reshape %9 : b1[]
  yield %10, %7
}
store %12 to Y{0}
)");
  Tensor s = host_tensor(i32, {8}), y = host_tensor(i32, {8});
  for (int64_t i = 0; i < 8; ++i) set(s, i, static_cast<double>(i));
  TW_EXPECT_ERROR(UserError, "k.cpp:3: error: check failed: steps are positive, at element [0]",
                  [&] { compile(p, Device::open("cpu:0"), {.checked = true})({s}, {y}); });
}

TEST(Checks, DivisionByZeroIsAnErrorOfCheckedLaunches) {
  const TempCache cache;
  for (const Launcher& run : {Launcher(on_cpu), Launcher(by_interpreter)}) {
    Example t;
    set(t.d, 4 * 8 + 1, 0);
    TW_EXPECT_ERROR(UserError,
                    "k.cpp:9: error: check failed: division by zero, at element [0, 1] of instance "
                    "(2, 0)",
                    [&] { run(divided(0), t, true); });
    run(divided(0), t, false);
    EXPECT_EQ(get(t.y, 4 * 8 + 1), 0);
  }
}

/// A cached text never says another program's message, nor another program's line.
TEST(Checks, ProgramsThatDifferInMessagesShareAText) {
  const TempCache cache;
  Example t;
  set(t.x, 0, -1);
  for (const char* message : {"one", "another \\x2f\\x2f \\x22 one"}) {
    TW_EXPECT_ERROR(UserError, message[0] == 'o' ? "failed: one," : "failed: another // \" one,",
                    [&] { on_cpu(divided(0, message), t, true); });
  }
  EXPECT_EQ(cache.files(".so").size(), 1u);
  on_cpu(divided(0), t, false);
  EXPECT_EQ(cache.files(".so").size(), 2u) << "checked is part of the key";
}

TEST(Prints, AreWholeLinesOnCpuAndInTheInterpreter) {
  const TempCache cache;
  const Program p = parse(R"(program shown
in x: f32[2, 3]
out y: f32[2, 3]
grid (2)
%0 = load x{pid0, 0} : f32[1,3]
print %0 "x"
%1 = cast %0 : f16[1,3]
%2 = reshape %1 : f16[3]
print %2 "halves"
%3 = full 0 : f32[1,1]
%4 = lt %3, %0 : b1[1,3]
print %4 "positive"
%5 = index pid0 - 1 : u64[]
print %5
%6 = cast %0 : i8[1,3]
print %6 "bytes"
store %0 to y{pid0, 0}
)");
  Tensor x = host_tensor(f32, {2, 3}), y = host_tensor(f32, {2, 3});
  const double values[] = {1, -2.5, 0.1, 65536, -0.0, 200};
  for (int64_t i = 0; i < 6; ++i) set(x, i, values[i]);
  const auto lines_of = [](const auto& run) {
    std::string text;
    run([&](std::string_view lines) { text += lines; });
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    std::ranges::sort(lines);  // instances come in any order
    return lines;
  };
  const auto want = ElementsAre(
      " (0) = 18446744073709551615", " (1) = 0", "bytes (0) [0, :] = 1 -2 0",
      "bytes (1) [0, :] = 127 0 127", "halves (0) = 1 -2.5 0.099975586", "halves (1) = inf -0 200",
      "positive (0) [0, :] = true false true", "positive (1) [0, :] = true false true",
      "x (0) [0, :] = 1 -2.5 0.1", "x (1) [0, :] = 65536 -0 200");
  EXPECT_THAT(lines_of([&](const PrintLines& f) {
                compile(p, Device::open("cpu:0"), {.print = f})({x}, {y});
              }),
              want);
  EXPECT_THAT(lines_of([&](const PrintLines& f) { interpret(p, {x}, {y}, {}, {.print = f}); }),
              want);
}

TEST(Prints, AThrowingListenerIsHeardAfterTheLaunch) {
  const TempCache cache;
  const Program p = parse(
      "program p\nout y: f32[4]\ngrid (4)\n%0 = full 1 : f32[1]\n"
      "print %0 \"x\"\nstore %0 to y{pid0}\n");
  const Tensor y = host_tensor(f32, {4});
  const Kernel k = compile(p, Device::open("cpu:0"),
                           {.print = [](std::string_view) { throw std::runtime_error("full"); }});
  EXPECT_THROW(k({}, {y}), std::runtime_error);
  EXPECT_EQ(get(y, 3), 1);
}

TEST(Prints, EjectedSourceHasNone) {
  const TempCache cache;
  const Kernel k = compile(divided(0), Device::open("cpu:0"), {.checked = true});
  const std::string path = cache.path() + "/divided.cpp";
  k.eject(path);
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find("div"), std::string::npos);
  EXPECT_EQ(text.find("tell"), std::string::npos);
}

}  // namespace
}  // namespace tw::test
