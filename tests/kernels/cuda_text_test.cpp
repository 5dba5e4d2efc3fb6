#include <gtest/gtest.h>

#include "tw/emit/cuda/emit_cuda.h"
#include "tw/kernels/entry.h"
#include "tw/passes/pipeline.h"

namespace tw {

using kernels::KernelEntry;
using kernels::Problem;

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

class KernelCudaText : public testing::TestWithParam<KernelEntry> {};

/// Tiles of GPU tilings lie in registers and in the block's memory, on every architecture.
TEST_P(KernelCudaText, FitsABlock) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
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

INSTANTIATE_TEST_SUITE_P(Library, KernelCudaText, testing::ValuesIn(kernels::kernel_list()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace tw
