#include "tw/measure/ceilings.h"

#include <gtest/gtest.h>
#include <iostream>

#include "tests/support/expect_error.h"

namespace tw::measure {
namespace {

TEST(Ceilings, AreWhatAMachineCanDo) {
  const Ceilings c = measure_ceilings(1, TW_WORKER, 1);
  std::cout << c.loops << ": " << c.f32_flops * 1e-3 << " GFLOP/s; memory GB/s read "
            << c.memory.read * 1e-3 << " write " << c.memory.write * 1e-3 << " copy "
            << c.memory.copy * 1e-3 << "; cache read " << c.cache.read * 1e-3 << " write "
            << c.cache.write * 1e-3 << " copy " << c.cache.copy * 1e-3 << "; " << c.seconds
            << " s\n";
  EXPECT_EQ(c.threads, 1);
  // Any processor of this century, and none yet made.
  for (double rate : {c.f32_flops, c.memory.read, c.memory.write, c.memory.copy, c.cache.read,
                      c.cache.write, c.cache.copy}) {
    EXPECT_GT(rate, 50);
    EXPECT_LT(rate, 2e6);
  }
}

TEST(Ceilings, NoWorkerIsAnError) {
  TW_EXPECT_ERROR(DeviceError, "contestant 'ceilings' failed: its process ended with status 127",
                  [] { measure_ceilings(1, "/nonexistent"); });
}

}  // namespace
}  // namespace tw::measure
