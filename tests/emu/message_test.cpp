// Checks and prints of programs on GPUs, as the emulator runs them.
#include <algorithm>
#include <fmt/format.h>
#include <sstream>

#include "tw/base/error.h"
#include "tw/emu/device.h"
#include "tw/ir/print.h"
#include "tw/jit/kernel.h"
#include "tw/lang/lang.h"
#include "tw/target/launch_spec.h"

#include "tests/support/expect_error.h"

namespace tw::test {
namespace {

Device emulated() {
  register_emulator();
  return Device::open("emu:0");
}

/// y = x / d in 3 x 2 instances of 2 x 4 elements; x is checked to be positive, a scalar too.
Program divided() {
  return parse(R"(program divided
in x: i32[5, 8]
in d: i32[5, 8]
out y: i32[5, 8]
grid (3, 2)
%0 = load x{pid0*2, pid1*4} pad 9 : i32[2,4] // k.cpp:3
%1 = full 0 : i32[1,1]
%2 = lt %1, %0 : b1[2,4]
assert %2 "x is positive" // k.cpp:7
%3 = load d{pid0*2, pid1*4} pad 1 : i32[2,4]
%4 = div %0, %3 : i32[2,4] // k.cpp:9
%5 = load x[pid0, pid1]{} pad 9 : i32[]
%6 = full 50 : i32[]
%7 = lt %5, %6 : b1[]
assert %7 "x is small" // k.cpp:10
store %4 to y{pid0*2, pid1*4}
)");
}

struct Numbers {
  Tensor x = host_tensor(i32, {5, 8}), d = host_tensor(i32, {5, 8}), y = host_tensor(i32, {5, 8});
  Numbers() {
    for (int64_t i = 0; i < 40; ++i) set(x, i, static_cast<double>(i + 1)), set(d, i, 2);
  }
};

TEST(EmuMessages, ChecksFailAtTheirLineAndElement) {
  Numbers t;
  const Kernel k = compile(divided(), emulated(), {.checked = true});
  k({t.x, t.d}, {t.y});
  EXPECT_EQ(get(t.y, 39), 20);
  set(t.x, 3 * 8 + 6, -1);  // element [1, 2] of instance (1, 1)
  TW_EXPECT_ERROR(UserError,
                  "k.cpp:7: error: check failed: x is positive, at element [1, 2] of instance "
                  "(1, 1)",
                  [&] {
                    k({t.x, t.d}, {t.y});
                  });
  set(t.x, 0, -1);
  TW_EXPECT_ERROR(UserError, "at element [0, 0] of instance (0, 0)", [&] { k({t.x, t.d}, {t.y}); });
  set(t.x, 0, 60);
  TW_EXPECT_ERROR(UserError, "k.cpp:10: error: check failed: x is small, in instance (0, 0)", [&] {
    k({t.x, t.d}, {t.y});
  });
  set(t.x, 0, 1), set(t.x, 30, 1), set(t.d, 9, 0);
  TW_EXPECT_ERROR(UserError, "k.cpp:9: error: check failed: division by zero, at element [1, 1]",
                  [&] {
                    k({t.x, t.d}, {t.y});
                  });
  compile(divided(), emulated())({t.x, t.d}, {t.y});
  EXPECT_EQ(get(t.y, 9), 0) << "not part of other launches";
}

/// What a check guards may not end.
TEST(EmuMessages, AnInstanceEndsWhereItFails) {
  const Kernel k = compile(parse(R"(program guarded
in S: i32[8]
out y: i32[8]
grid (8)
%0 = load S[pid0]{} : i32[]
%1 = full 0 : i32[]
%2 = lt %1, %0 : b1[]
assert %2 "it gets there"
%3 = full 64 : i32[]
%4 = lt %1, %3 : b1[]
%5, %6 = while carry (%7 = %4, %8 = %1) : b1[], i32[] {
  %9 = add %8, %0 : i32[]
  %10 = lt %9, %3 : b1[]
  yield %10, %9
}
store %6 to y[pid0]{}
)"),
                           emulated(), {.checked = true});
  const Tensor s = host_tensor(i32, {8}), y = host_tensor(i32, {8});
  for (int64_t i = 0; i < 8; ++i) set(s, i, i == 5 ? 0 : 3);
  TW_EXPECT_ERROR(UserError, "check failed: it gets there, in instance (5)", [&] { k({s}, {y}); });
}

/// Lines that the program prints on a device, sorted: instances are in no order.
std::vector<std::string> printed_on(const Device& d, const Program& p, const Tensor& x,
                                    const Tensor& y) {
  std::string text;
  const PrintLines hear = [&](std::string_view lines) { text += lines; };
  compile(p, d, {.print = hear})({x}, {y});
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

Program talking(DType t, int64_t rows, int64_t cols) {
  Trace k("talking");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", t, {M, N}), Y = k.output("Y", t, {M, N});
  auto [m, n] = k.grid(cdiv(M, rows), cdiv(N, cols));
  Tile x = load(X.tile({m, n}, {rows, cols}));
  k.print("x", x);
  for (Index i : k.range(2)) {
    k.when(eq(i, 1), [&] { k.print("least", reduce(x, 1, Combiner::min)); });
    x = x + 1;
  }
  k.print("zero", eq(x, 0));
  store(Y.tile({m, n}, {rows, cols}), x);
  return k.finish();
}

TEST(EmuMessages, PrintsAreThoseOfACpu) {
  const Device emu = emulated(), cpu = Device::open("cpu:0");
  for (const DType t : {f32, bf16, i8, u64, f64}) {
    const Tensor x = host_tensor(t, {5, 70}), y = host_tensor(t, {5, 70});
    for (int64_t i = 0; i < 350; ++i) set(x, i, static_cast<double>(i % 50));
    const Program p = talking(t, 2, 64);
    EXPECT_EQ(printed_on(emu, p, x, y), printed_on(cpu, p, x, y)) << name(t);
  }
}

TEST(EmuMessages, WhatFindsNoRoomIsCounted) {
  const Device emu = emulated();
  const int64_t rows = 40, cols = 16384;  // 64 KB a print, of 1 MB
  Trace k("loud");
  TensorRef X = k.input("X", f32, {rows, cols}), Y = k.output("Y", f32, {rows, cols});
  auto [m] = k.grid(rows);
  Tile x = load(X.tile({m, 0}, {1, cols}));
  k.print("row", x);
  store(Y.tile({m, 0}, {1, cols}), x);
  const Tensor x_all = host_tensor(f32, {rows, cols}), y = host_tensor(f32, {rows, cols});
  for (int64_t i = 0; i < x_all.count(); ++i) set(x_all, i, 1);
  const std::vector<std::string> lines = printed_on(emu, k.finish(), x_all, y);
  const int64_t fit = (kMessageBytes - kCheckBytes - 32) / (48 + 4 * cols);
  ASSERT_EQ(static_cast<int64_t>(lines.size()), fit + 1);
  EXPECT_EQ(lines[0], fmt::format("loud: {} more prints found no room in {} bytes", rows - fit,
                                  kMessageBytes - kCheckBytes));
}

/// Others wait for an instance of a program in order: it goes on.
TEST(EmuMessages, InOrderAFailedCheckEndsNoInstance) {
  Trace k("chain");
  Index N = k.dim("N");
  TensorRef X = k.input("X", i32, {N}), Y = k.output("Y", i32, {N});
  TensorRef flags = k.workspace("flags", i32, {N});
  auto [n] = k.grid(N);
  k.in_order();
  Tile x = load(X.window({n}, {1}));
  k.check(x < 7, "x is small");
  Tile seen = where(k.full(i64, {}, 0) >= n, k.full(i32, {}, 1), 0);
  While waiting(k);
  while (waiting(eq(seen, 0))) seen = atomic_fetch(flags, {n - 1}, 0, AtomicOp::or_);
  store(Y.window({n}, {1}), x);
  atomic(flags, {n}, 1, AtomicOp::exch);
  const Kernel kernel = compile(k.finish(), emulated(), {.checked = true});
  const Tensor x_all = host_tensor(i32, {10}), y = host_tensor(i32, {10});
  for (int64_t i = 0; i < 10; ++i) set(x_all, i, static_cast<double>(i));
  TW_EXPECT_ERROR(UserError, "check failed: x is small, at element [0] of instance (7)",
                  [&] { kernel({x_all}, {y}); });
  EXPECT_EQ(get(y, 9), 9);
}

}  // namespace
}  // namespace tw::test
