#include "tests/micro/micro.h"

#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <set>

#include "tw/emit/cuda/prelude_cuda.h"
#include "tw/jit/nvrtc.h"

#include "tests/runtime/fake/fake_cuda.h"

namespace tw::test {
namespace {

class MicroKernels : public testing::TestWithParam<std::string> {};

/// One seed in the suite of tests, many in a soak.
TEST_P(MicroKernels, AreInTheEmulatorAsTheyMustBe) {
  const char* text = std::getenv("TW_EMU_SEEDS");
  const uint64_t seeds = text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
  for (const MicroKernel& k : micro_group(GetParam())) {
    for (uint64_t seed = 0; seed < seeds; ++seed)
      EXPECT_EQ(run_in_emulator(k, seed), "") << k.name << ", seed " << seed;
  }
}

TEST_P(MicroKernels, AreCudaThatNvrtcTakes) {
  const std::string text = text_of(micro_group(GetParam()), cpu::Thread::cuda);
  EXPECT_NO_THROW(compile_cubin(find_nvrtc(), "sm_90a", text, false));
}

INSTANTIATE_TEST_SUITE_P(All, MicroKernels, testing::ValuesIn(micro_groups()),
                         [](const auto& info) { return std::to_string(info.index); });

/// Whoever adds a function to the prelude adds a micro kernel.
TEST(MicroKernelsAll, ShowEveryFunctionOfThePrelude) {
  std::set<std::string> shown;
  std::set<std::pair<std::string, DType>> scalars;
  for (const std::string& group : micro_groups()) {
    for (const MicroKernel& k : micro_group(group)) {
      for (const std::string& f : k.of) {
        EXPECT_NE(k.program.find(f), std::string::npos) << k.name << " does not call " << f;
        shown.insert(f);
      }
      for (const auto& [function, type] : k.scalars) {
        EXPECT_NE(k.program.find("tw_" + function), std::string::npos) << k.name;
        scalars.insert({function, type});
      }
    }
  }
  for (const std::string& name : cuda::thread_function_names()) {
    const bool is_function = name.starts_with("tw_") && !name.starts_with("tw_emu_");
    EXPECT_TRUE(!is_function || shown.contains(name)) << "no micro kernel shows " << name;
  }
  for (const auto& [function, type] : cpu::thread_texts())
    EXPECT_TRUE(scalars.contains({function, type}))
        << "no micro kernel shows " << function << " of " << name(type);
}

TEST(MicroKernelsAll, ResultsThatDifferAreTold) {
  const MicroKernel& k = micro_group("threads")[0];
  std::vector<Tensor> got = {copy(k.results[0].want)};
  EXPECT_EQ(differences(k, got), "");
  set(got[0], 192 + 70, 9);
  set(got[0], 192 + 71, 9);
  EXPECT_EQ(differences(k, got), "numbers tw_block: 2 of 192 differ, x0[70] is 0x9: wanted 0x1\n");
}

/// A driver that only writes down what it gets: nothing is as it must be, and that is told.
TEST(MicroKernelsAll, AreLaunchedOnAGpu) {
  const char* const variable = "TW_CUDA_DRIVER";
  setenv(variable, TW_FAKE_CUDA, 1);
  FakeCuda& fake = fresh_fake(TW_FAKE_CUDA);
  fake.parameter_words = 1;
  const auto& kernels = micro_group("clusters");
  std::vector<std::string> faults;
  run_on_gpu(kernels, "cuda:0", [&](size_t i, const std::string& fault) {
    EXPECT_EQ(i, faults.size());
    faults.push_back(fault);
  });
  unsetenv(variable);
  ASSERT_EQ(faults.size(), kernels.size());
  EXPECT_EQ(faults[0], "cluster_rank: 256 of 256 differ, x0[0] is 0xa5a5a5a5: wanted 0x0\n");
  ASSERT_EQ(fake.launches.size(), kernels.size());
  EXPECT_EQ(fake.launches[0].function, "tw_k_cluster_rank");
  EXPECT_EQ(fake.launches[0].grid, 8u);
  EXPECT_EQ(fake.launches[1].shared_bytes, 640u);
}

}  // namespace
}  // namespace tw::test
