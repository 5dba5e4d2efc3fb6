#include "tw/emu/device.h"

#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tw/base/error.h"
#include "tw/ir/print.h"
#include "tw/jit/kernel.h"

#include "tests/jit/scale.h"
#include "tests/support/expect_error.h"

namespace tw::test {
namespace {

/// All instances write y[0], and nothing says which comes last.
const char* const kConflict = R"(program conflict
dim N
in x: f32[N]
out y: f32[1]
grid (N)
%0 = load x{pid0} : f32[1]
store %0 to y{0}
)";

TEST(EmuDevice, RunsKernelsInMemoryOfTheHost) {
  register_emulator();
  register_emulator();
  const Device d = Device::open("emu:0");
  EXPECT_EQ(d.kind(), DeviceKind::emu);
  EXPECT_EQ(d.gpu().arch, "sm_90a");
  EXPECT_NE(d.target().gpu(), nullptr);
  const Kernel k = compile(parse("program twice\ndim N\nin x: f32[N]\nout y: f32[N]\n"
                                 "grid (cdiv(N, 64))\n%0 = load x{pid0*64} : f32[64]\n"
                                 "%1 = add %0, %0 : f32[64]\nstore %1 to y{pid0*64}\n"),
                           d);
  const Tensor x = empty(d, f32, {1000}), y = empty(d, f32, {1000});
  for (int64_t i = 0; i < 1000; ++i) set(x, i, static_cast<double>(i));
  k({x}, {y});
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(get(y, i), 2.0 * static_cast<double>(i)) << i;
  EXPECT_EQ(k.mapping().substr(0, 5), "cuda1");
}

TEST(EmuDevice, AtomicsOrderZeros) {
  register_emulator();
  const Device d = Device::open("emu:0");
  for (const std::string op : {"min", "max"}) {
    const Kernel k = compile(
        parse("program zeros\nin x: f32[2]\ninout y: f32[2]\ngrid (1)\n%0 = load x{0} : f32[2]\n"
              "%1 = iota axis 0 : i64[2]\natomic " +
              op + " relaxed device %0 to y{%1}\n"),
        d);
    const Tensor x = empty(d, f32, {2}), y = empty(d, f32, {2});
    set(x, 0, 0.0), set(x, 1, -0.0);
    set(y, 0, -0.0), set(y, 1, 0.0);
    k({x}, {y});
    for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(std::signbit(get(y, i)), op == "min") << op << i;
  }
}

TEST(EmuDevice, AFaultIsAnError) {
  register_emulator();
  const Device d = Device::open("emu:0");
  const Kernel k = compile(parse(kConflict), d);
  const Tensor x = empty(d, f32, {8}), y = empty(d, f32, {1});
  for (int64_t i = 0; i < 8; ++i) set(x, i, static_cast<double>(i));
  const ScopedEnv seed("TW_EMU_SEED", "7");
  TW_EXPECT_ERROR(DeviceError, "TW_EMU_SEED=7 gives a first launch this schedule",
                  [&] { k({x}, {y}); });
  TW_EXPECT_ERROR(DeviceError, "race: ", [&] { k({x}, {y}); });
}

TEST(EmuDevice, RefusesSeedsThatAreNone) {
  register_emulator();
  const Device d = Device::open("emu:0");
  const Kernel k = compile(parse(kConflict), d);
  const Tensor x = empty(d, f32, {1}), y = empty(d, f32, {1});
  for (const char* text : {"-1", "x", "1.5", ""}) {
    const ScopedEnv seed("TW_EMU_SEED", text);
    TW_EXPECT_ERROR(UserError, fmt::format("TW_EMU_SEED is '{}'", text), [&] { k({x}, {y}); });
  }
}

}  // namespace
}  // namespace tw::test
