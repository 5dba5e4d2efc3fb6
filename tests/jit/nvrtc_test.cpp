#include "tw/jit/nvrtc.h"

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tw/base/error.h"

#include "tests/jit/scale.h"
#include "tests/support/expect_error.h"

namespace tw::test {

static const Nvrtc& nvrtc() { return find_nvrtc(); }

static const char* const kScale =
    "extern \"C\" __global__ void tw_scale(float* p) { p[threadIdx.x] *= 3; }\n";

TEST(Nvrtc, CompilesTextOnAMachineWithoutAGpu) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const CompiledCuda c = compile_cubin(nvrtc(), arch, kScale, false);
    EXPECT_EQ(c.cubin.substr(0, 4), "\177ELF");
    EXPECT_THAT(c.cubin, testing::HasSubstr("tw_scale"));
    EXPECT_THAT(c.log, testing::HasSubstr(arch));
    EXPECT_GT(c.registers, 1);
    EXPECT_LT(c.registers, 64);
    EXPECT_EQ(c.spill_bytes, 0);
    EXPECT_FALSE(c.serialized);
    EXPECT_GT(c.milliseconds, 0);
  }
  EXPECT_THAT(nvrtc().identity, testing::HasSubstr("NVRTC 13."));
  EXPECT_TRUE(std::filesystem::exists(nvrtc().path)) << nvrtc().path;
}

TEST(Nvrtc, SpillsAreCounted) {
  const CompiledCuda c =
      compile_cubin(nvrtc(), "sm_90a",
                    "extern \"C\" __global__ void __launch_bounds__(1024) f(float* p) {\n"
                    "  float v[128];\n"
                    "#pragma unroll\n"
                    "  for (int i = 0; i < 128; ++i) v[i] = p[i * 1024 + threadIdx.x];\n"
                    "  __syncthreads();\n"
                    "#pragma unroll\n"
                    "  for (int i = 0; i < 128; ++i)\n"
                    "    p[i * 1024 + threadIdx.x] = v[i] * v[127 - i];\n"
                    "}\n",
                    false);
  EXPECT_GT(c.spill_bytes, 0) << c.log;
  EXPECT_LE(c.registers, 64);
}

TEST(Nvrtc, RemarksOfSerializedInstructionsAreSeen) {
  // Tensor-core instructions with no fence before them.
  const CompiledCuda c = compile_cubin(
      nvrtc(), "sm_90a",
      "extern \"C\" __global__ void __launch_bounds__(128) f(float* p, unsigned long long a) {\n"
      "  float d[4] = {p[0], p[1], p[2], p[3]};\n"
      "  asm volatile(\"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, "
      "%4, 1, 1, 1, 0, 0;\" : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) : "
      "\"l\"(a));\n"
      "  asm volatile(\"wgmma.commit_group.sync.aligned;\");\n"
      "  asm volatile(\"wgmma.wait_group.sync.aligned 0;\");\n"
      "  for (int i = 0; i < 4; ++i) p[threadIdx.x * 4 + i] = d[i];\n"
      "}\n",
      false);
  EXPECT_TRUE(c.serialized) << c.log;
}

TEST(Nvrtc, LinesAreKeptForDebuggers) {
  const std::string plain = compile_cubin(nvrtc(), "sm_80", kScale, false).cubin;
  const std::string lines = compile_cubin(nvrtc(), "sm_80", kScale, true).cubin;
  EXPECT_EQ(plain.find(".debug_line"), std::string::npos);
  EXPECT_NE(lines.find(".debug_line"), std::string::npos);
}

TEST(Nvrtc, FaultsOfTheTextAreOurs) {
  try {
    compile_cubin(nvrtc(), "sm_80", "__global__ void f() { nothing; }\n", false);
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_THAT(e.message(), testing::HasSubstr("NVRTC rejected a kernel: kernel.cu(1): error"));
    EXPECT_THAT(e.reproducer(), testing::HasSubstr("\"nothing\" is undefined"));
    EXPECT_THAT(e.reproducer(), testing::HasSubstr("__global__ void f()"));
  }
}

TEST(Nvrtc, ArchitecturesThatItLacksAreTold) {
  TW_EXPECT_ERROR(EnvError, "this GPU may need a later one",
                  [] { compile_cubin(nvrtc(), "sm_999", kScale, false); });
}

TEST(Nvrtc, ManyThreadsCompile) {
  const Nvrtc& n = nvrtc();
  std::vector<std::string> cubins(4);
  std::vector<std::thread> threads;
  for (std::string& cubin : cubins)
    threads.emplace_back([&] { cubin = compile_cubin(n, "sm_80", kScale, false).cubin; });
  for (std::thread& t : threads) t.join();
  for (const std::string& cubin : cubins) EXPECT_EQ(cubin, cubins[0]);
}

TEST(Nvrtc, NoneIsToldWithThePackage) {
  const std::vector<std::string> nowhere = {"/nowhere/libnvrtc.so.13"};
  TW_EXPECT_ERROR(EnvError,
                  "no NVRTC, which compiles kernels for GPUs: /nowhere/libnvrtc.so.13: cannot open",
                  [&] { load_nvrtc(nowhere); });
  TW_EXPECT_ERROR(EnvError, "pip install nvidia-cuda-nvrtc", [&] { load_nvrtc(nowhere); });
  const std::vector<std::string> other = {"libm.so.6"};
  TW_EXPECT_ERROR(EnvError, "has no nvrtcVersion", [&] { load_nvrtc(other); });
}

TEST(Nvrtc, FoldersOfPackagesAreSearched) {
  const TempCache folder;
  const std::string packages = folder.path() + "/lib/python3.9/site-packages/nvidia/cu13/lib";
  std::filesystem::create_directories(packages);
  std::ofstream(packages + "/libnvrtc.so.13") << "";
  const ScopedEnv python("VIRTUAL_ENV", folder.path());
  EXPECT_THAT(nvrtc_paths(), testing::Contains(packages + "/libnvrtc.so.13"));
  EXPECT_EQ(nvrtc_paths().back(), "libnvrtc.so.13");
  const ScopedEnv named("TW_NVRTC", packages);
  EXPECT_THAT(nvrtc_paths(), testing::ElementsAre(packages + "/libnvrtc.so.13"));
  const ScopedEnv wrong("TW_NVRTC", "/nowhere");
  TW_EXPECT_ERROR(UserError, "TW_NVRTC is '/nowhere', where no libnvrtc.so.13 lies",
                  [] { find_nvrtc(); });
}

TEST(Nvrtc, FewerBlocksLeaveRegistersEnough) {
  // 96 sums of a thread and 64 registers do not fit; 128 do.
  const std::string text = R"(#ifndef TW_BLOCKS
#define TW_BLOCKS 4
#endif
extern "C" __global__ void __launch_bounds__(256, TW_BLOCKS) f(float* p) {
  float s[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) s[i] = p[i * 256 + threadIdx.x];
  for (int k = 0; k < 9; ++k) {
#pragma unroll
    for (int i = 0; i < 96; ++i) s[i] = s[i] * s[(i + 1) % 96];
  }
#pragma unroll
  for (int i = 0; i < 96; ++i) p[i * 256 + threadIdx.x] = s[i];
}
)";
  EXPECT_GT(compile_cubin(nvrtc(), "sm_90a", text, false).spill_bytes, 0);
  const CompiledCuda made = compile_without_spills(nvrtc(), "sm_90a", text, false);
  EXPECT_EQ(made.spill_bytes, 0);
  EXPECT_GT(made.registers, 64);
  EXPECT_LE(made.registers, 128);
}

}  // namespace tw::test
