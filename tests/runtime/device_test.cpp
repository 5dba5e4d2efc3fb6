#include "tw/runtime/device.h"

#include <sched.h>

#include "tw/base/error.h"
#include "tw/runtime/thread_pool.h"

#include "tests/support/expect_error.h"

namespace tw {

TEST(Device, Cpu0IsThisMachine) {
  Device d = Device::open("cpu:0");
  EXPECT_EQ(d.name(), "cpu:0");
  EXPECT_EQ(d.cpu(), detect_cpu());
  EXPECT_EQ(d.cpu().vector_bytes, machine_named(d.cpu().isa).vector_bytes);
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(d.cpu().cores, CPU_COUNT(&set));
#if defined(__x86_64__)
  EXPECT_EQ(d.cpu().isa == "generic", !__builtin_cpu_supports("avx2"));
  EXPECT_EQ(d.cpu().isa == "avx512", __builtin_cpu_supports("avx512vl") != 0);
#endif
}

TEST(Device, AllDevicesShareOnePool) {
  Device a = Device::open("cpu:0"), b = Device::open_as(machine_named("generic"));
  EXPECT_EQ(&a.pool(), &b.pool());
  EXPECT_EQ(b.cpu().isa, "generic");
}

TEST(Device, UnknownNameIsAnError) {
  TW_EXPECT_ERROR(UserError, "unknown device 'gpu:0'; known devices: cpu:0, cuda:0",
                  [] { Device::open("gpu:0"); });
}

TEST(Device, EmptyGivesContiguousAlignedMemory) {
  Tensor t = empty(Device::open("cpu:0"), f16, {3, 4});
  EXPECT_TRUE(t.view().is_contiguous());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.view().data) % 64, 0u);
  TW_EXPECT_ERROR(EnvError, "no memory", [] {
    empty(Device::open("cpu:0"), f32, {1 << 20, 1 << 20});
  });
}

}  // namespace tw
