#include <gtest/gtest.h>

#include "tw/interp/interpreter.h"
#include "tw/kernels/entry.h"

namespace tw {

using kernels::KernelEntry;
using kernels::Problem;

class KernelMeaning : public testing::TestWithParam<KernelEntry> {};

/// The interpreter knows nothing of compilers: when a program misses its reference here, the
/// program is wrong; when it misses only in KernelSweep, a compiler is.
static void expect_reference(const KernelEntry& entry, const Target& target) {
  check::Sweep sweep({.values = {check::Values::uniform, check::Values::special}, .layouts = {}});
  for (const Problem& p : entry.sweep()) {
    Problem whole = complete(entry, p);
    int64_t elements = 0;
    for (const kernels::Argument& a : entry.arguments(whole)) {
      int64_t count = 1;
      for (const int64_t d : a.dims) count *= d;
      elements += count;
    }
    if (elements > 1500) continue;
    Program program = entry.trace(whole, target);
    sweep.add(
        std::string(entry.name) + " " + to_string(whole),
        {.arguments = entry.arguments(whole),
         .run = [&](const auto& in, const auto& out) { interpret(program, in, out); },
         .reference = [&](std::span<const TensorView> in) { return entry.reference(whole, in); }});
  }
  EXPECT_EQ(sweep.verdict(), "");
  EXPECT_GT(sweep.runs(), 0);
}

TEST_P(KernelMeaning, ProgramIsItsReference) {
  expect_reference(GetParam(), {machine_named("avx2"), 2});
}

TEST_P(KernelMeaning, ProgramForAGpuIsItsReference) {
  expect_reference(GetParam(), gpu_named("sm_90a"));
}

INSTANTIATE_TEST_SUITE_P(Library, KernelMeaning, testing::ValuesIn(kernels::kernel_list()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace tw
