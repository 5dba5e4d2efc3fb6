#include <algorithm>
#include <gtest/gtest.h>

#include "tw/base/error.h"
#include "tw/emit/cuda/emit_cuda.h"
#include "tw/jit/nvrtc.h"
#include "tw/kernels/entry.h"
#include "tw/passes/pipeline.h"

namespace tw {

using kernels::KernelEntry;
using kernels::Problem;

static const char* const kArchs[] = {"sm_80", "sm_90a"};

/// The kernel's text for a GPU, for tensors that lie one row after the other.
static EmittedCuda cuda_text(const KernelEntry& entry, const Problem& p, const GpuMachine& gpu) {
  Program program = entry.trace(p, gpu);
  canonicalize(program);
  Specialisation facts = contiguous_facts(program);
  for (ParamFacts& f : facts.params) f.aligned = true;
  const Mapping mapping{"cuda1", {}};
  run_passes(program, cuda_passes(), {machine_named("generic"), mapping, facts}, true);
  return emit_cuda(program, facts, gpu, mapping);
}

/// The first problem of the benchmarks of that type, or the first of another with its type changed.
static Problem usual_problem(const KernelEntry& entry, DType t) {
  const std::vector<Problem> all = entry.bench();
  const auto found = std::ranges::find(all, t, &Problem::dtype);
  Problem p = found == all.end() ? all.at(0) : *found;
  p.dtype = t;
  return complete(entry, p);
}

class KernelCudaText : public testing::TestWithParam<KernelEntry> {};

/// Tiles of GPU tilings lie in registers and in the block's memory, on every architecture.
TEST_P(KernelCudaText, FitsABlock) {
  for (const char* arch : kArchs) {
    const GpuMachine& gpu = gpu_named(arch);
    for (const Problem& p : GetParam().sweep()) {
      const Problem whole = complete(GetParam(), p);
      const EmittedCuda e = cuda_text(GetParam(), whole, gpu);
      const std::string here = to_string(whole) + " for " + arch;
      EXPECT_NE(e.text.find(e.launch.entry), std::string::npos) << here;
      EXPECT_EQ(e.launch.threads % 32, 0) << here;
      EXPECT_GE(e.launch.threads, 32) << here;
      EXPECT_LE(e.launch.threads, 1024) << here;
      EXPECT_LE(e.launch.shared_bytes, gpu.shared_per_block) << here;
      EXPECT_EQ(e.launch.scratch_bytes, 0) << here;
    }
  }
}

/// What is saved around calls of slow paths (of divisions) counts as spilled.
static constexpr int64_t kSavedAtCalls = 16;
/// Windows of nine 16-bit places in sixteen registers each: the assembler of sm_80 alone spills.
static constexpr int64_t kWindowsOnSm80 = 136;

TEST_P(KernelCudaText, CompilesWithoutSpills) {
  try {
    find_nvrtc();
  } catch (const EnvError& e) {
    GTEST_SKIP() << e.what();
  }
  for (const char* arch : kArchs) {
    for (const DType t : GetParam().dtypes) {
      const Problem p = usual_problem(GetParam(), t);
      const EmittedCuda e = cuda_text(GetParam(), p, gpu_named(arch));
      const CompiledCuda made = compile_without_spills(find_nvrtc(), arch, e.text, false);
      const std::string here = to_string(p) + " for " + arch;
      const bool windows = std::string(GetParam().name) == "pool2d" && std::string(arch) == "sm_80";
      EXPECT_LE(made.spill_bytes, windows ? kWindowsOnSm80 : kSavedAtCalls) << here;
      EXPECT_FALSE(made.serialized) << here;
    }
  }
}

/// Rows that instances share are traced by another function than the benchmarks' first.
TEST(LongRows, CompileWithoutSpills) {
  try {
    find_nvrtc();
  } catch (const EnvError& e) {
    GTEST_SKIP() << e.what();
  }
  const KernelEntry& cumsum = kernels::kernel_named("cumsum");
  for (const char* arch : kArchs) {
    for (const DType t : cumsum.dtypes) {
      for (const auto& [direction, exclusive] : {std::pair{"forward", "no"}, {"reverse", "yes"}}) {
        const Problem p{
            {{"m", 1}, {"n", 1 << 20}}, t, {{"direction", direction}, {"exclusive", exclusive}}};
        const EmittedCuda e = cuda_text(cumsum, complete(cumsum, p), gpu_named(arch));
        EXPECT_TRUE(e.launch.in_order);
        const CompiledCuda made = compile_without_spills(find_nvrtc(), arch, e.text, false);
        EXPECT_LE(made.spill_bytes, kSavedAtCalls) << arch;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Library, KernelCudaText, testing::ValuesIn(kernels::kernel_list()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace tw
