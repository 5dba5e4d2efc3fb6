#include <gtest/gtest.h>

#include "tw/interp/interpreter.h"
#include "tw/kernels/entry.h"

namespace tw {

using kernels::KernelEntry;
using kernels::Problem;

class KernelMeaning : public testing::TestWithParam<KernelEntry> {};

namespace {

void add_interpreted(check::Sweep& sweep, const KernelEntry& entry, const Problem& p,
                     const Target& target) {
  const Program program = entry.trace(p, target);
  sweep.add(std::string(entry.name) + " " + to_string(p),
            {.arguments = entry.arguments(p),
             .run = [&](const auto& in, const auto& out) { interpret(program, in, out); },
             .reference = [&](std::span<const TensorView> in) { return entry.reference(p, in); }});
}

/// The interpreter knows nothing of compilers: when a program misses its reference here, the
/// program is wrong; when it misses only in KernelSweep, a compiler is.
void expect_reference(const KernelEntry& entry, const Target& target) {
  check::SweepOptions options{.values = {check::Values::uniform, check::Values::special},
                              .layouts = {}};
  if (entry.family == check::Family::norm) options.values.push_back(check::Values::scaled);
  check::Sweep sweep(options);
  for (const Problem& p : entry.sweep()) {
    const Problem whole = complete(entry, p);
    int64_t elements = 0;
    for (const kernels::Argument& a : entry.arguments(whole)) {
      int64_t count = 1;
      for (const int64_t d : a.dims) count *= d;
      elements += count;
    }
    if (elements <= 1500) add_interpreted(sweep, entry, whole, target);
  }
  EXPECT_EQ(sweep.verdict(), "");
  EXPECT_GT(sweep.runs(), 0);
}

}  // namespace

TEST_P(KernelMeaning, ProgramIsItsReference) {
  expect_reference(GetParam(), {machine_named("avx2"), 2});
}

TEST_P(KernelMeaning, ProgramForAGpuIsItsReference) {
  expect_reference(GetParam(), gpu_named("sm_90a"));
}

/// Of one key gradients are small differences times subnormal numbers, whose rounding counts.
TEST(KernelMeaningOfGradients, SubnormalProductsAreWithinTheBound) {
  const KernelEntry& entry = kernels::kernel_named("attention_backward_queries");
  const Problem p = complete(
      entry, {{{"batch", 4}, {"heads", 2}, {"kv_heads", 1}, {"sq", 65}, {"skv", 1}, {"head", 1}}});
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    check::Sweep sweep(
        {.values = {check::Values::special}, .layouts = {}, .whole = false, .seed = seed});
    add_interpreted(sweep, entry, p, {machine_named("avx2"), 2});
    EXPECT_EQ(sweep.verdict(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Library, KernelMeaning, testing::ValuesIn(kernels::kernel_list()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace tw
