#include "tw/target/gpu.h"

#include "tw/base/error.h"

#include "tests/support/expect_error.h"

namespace tw {

TEST(Gpu, NamedOnesAreConsistent) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const GpuMachine& m = gpu_named(arch);
    EXPECT_EQ(m.arch, arch);
    EXPECT_FALSE(m.name.empty()) << arch;
    EXPECT_GT(m.shared_per_block, 48 << 10) << arch;
    EXPECT_LT(m.shared_per_block, m.shared_per_multiprocessor) << arch;
    EXPECT_LT(m.l2, m.memory) << arch;
    EXPECT_GT(m.copy_bandwidth, 1e12) << arch;
  }
  EXPECT_NE(gpu_named("sm_80"), gpu_named("sm_90a"));
}

TEST(Gpu, TextShowsEveryFieldThatLoweringMaySee) {
  EXPECT_EQ(to_string(gpu_named("sm_90a")),
            "NVIDIA H200 arch=sm_90a multiprocessors=132 shared_per_block=232448 "
            "shared_per_multiprocessor=233472 registers=65536 max_threads=2048 most_cluster=8 "
            "early_launch=true l2=62914560 "
            "memory=150323855360 copy_bandwidth=4277560320000");
}

TEST(Gpu, ArchitectureIsThatWithAllFeatures) {
  EXPECT_EQ(gpu_arch(8, 0), "sm_80");
  EXPECT_EQ(gpu_arch(8, 9), "sm_89");
  EXPECT_EQ(gpu_arch(9, 0), "sm_90a");
  EXPECT_EQ(gpu_arch(12, 0), "sm_120a");
}

TEST(Gpu, UnknownNameIsAnError) {
  TW_EXPECT_ERROR(UserError, "unknown gpu 'sm_70'; known gpus: sm_80 (a100), sm_90a (h200)",
                  [] { gpu_named("sm_70"); });
}

TEST(Gpu, ShortNames) {
  EXPECT_EQ(&gpu_named("h200"), &gpu_named("sm_90a"));
  EXPECT_EQ(&gpu_named("a100"), &gpu_named("sm_80"));
  EXPECT_TRUE(is_gpu_name("h200"));
  EXPECT_FALSE(is_gpu_name("cpu:0"));
}

// By hand, as NVIDIA's occupancy calculator does it.
TEST(Gpu, ResidentBlocks) {
  const GpuMachine& m = gpu_named("h200");
  EXPECT_EQ(resident_blocks(m, 256, 64, 8704), 4);      // 32 warps of 2048 registers
  EXPECT_EQ(resident_blocks(m, 256, 151, 0), 1);        // 13 warps of 4864, of four schedulers 12
  EXPECT_EQ(resident_blocks(m, 32, 16, 0), 32);         // no more blocks than that
  EXPECT_EQ(resident_blocks(m, 1024, 32, 0), 2);        // 2048 threads
  EXPECT_EQ(resident_blocks(m, 128, 32, 75 << 10), 3);  // 228 KB, of which a block's system has 1
  EXPECT_EQ(resident_blocks(m, 1024, 128, 0), 0);       // 32 warps of 4096: half too many
}

}  // namespace tw
