#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tw/emu/device.h"
#include "tw/jit/kernel.h"
#include "tw/kernels/entry.h"
#include "tw/kernels/quant/quant.h"

namespace tw::test {
namespace {

using kernels::KernelEntry;
using kernels::Problem;

class EmulatedLibrary : public testing::TestWithParam<KernelEntry> {
 protected:
  void SetUp() override { register_emulator(); }
};

int64_t elements(const KernelEntry& entry, const Problem& p) {
  int64_t sum = 0;
  for (const check::Argument& a : entry.arguments(p)) {
    int64_t count = 1;
    for (const int64_t n : a.dims) count *= n;
    sum += count;
  }
  return sum;
}

/// Of the sweep, what is worth the emulator's time: the first problems that are not empty and
/// small, and the first of each other type.
std::vector<Problem> tiny_problems(const KernelEntry& entry, size_t most) {
  constexpr int64_t kMostElements = 4000;
  std::vector<Problem> tiny;
  const auto seen = [&tiny](DType t) {
    return std::ranges::any_of(tiny, [t](const Problem& p) { return p.dtype == t; });
  };
  for (const Problem& p : entry.sweep()) {
    const Problem whole = complete(entry, p);
    const auto arguments = entry.arguments(whole);
    const bool empty = std::ranges::any_of(
        arguments, [](const auto& a) { return std::ranges::count(a.dims, 0) > 0; });
    if (empty || elements(entry, whole) > kMostElements) continue;
    if (tiny.size() < most || !seen(p.dtype)) tiny.push_back(whole);
  }
  return tiny;
}

/// Every kernel with its tiling for a GPU: right, and without races, reads of nothing, accesses
/// beside the tensors and threads that part.
TEST_P(EmulatedLibrary, RunsClean) {
  const KernelEntry& entry = GetParam();
  const Device device = Device::open("emu:0");
  const std::vector<Problem> problems = tiny_problems(entry, 3);
  ASSERT_FALSE(problems.empty());
  check::Sweep sweep({.values = {check::Values::uniform, check::Values::special},
                      .refuses_aliases = false,
                      .whole = false});
  for (const Problem& p : problems) {
    const Kernel kernel = compile(entry.trace(p, device.target()), device);
    sweep.add(
        fmt::format("{} {}", entry.name, to_string(p)),
        {.arguments = entry.arguments(p),
         .run = [&](const auto& in, const auto& out) { kernel(in, out); },
         .reference = [&](std::span<const TensorView> in) { return entry.reference(p, in); }});
  }
  EXPECT_EQ(sweep.verdict(), "");
}

/// Rows that no block holds: of whole runs, and of others; one of zeros, one with a NaN.
TEST(EmulatedQuantise, RowsReadTwiceGetTheCodesOfHeldOnes) {
  register_emulator();
  constexpr int64_t kRows = 4;
  for (const int64_t k : {1504, 1501}) {
    const Tensor x = host_tensor(bf16, {kRows, k});
    for (int64_t i = 0; i < kRows * k; ++i)
      set(x, i, i / k == 1 ? -0.0 : std::ldexp(static_cast<double>(i * 37 % 511 - 255), i % 7));
    set(x, 2 * k + 700, NAN);
    const auto codes = [&](const char* device, const kernels::QuantizeTiling& tiling) {
      const Tensor q = host_tensor(e4m3, {kRows, k}), scale = host_tensor(f32, {kRows});
      compile(kernels::quantize_fp8(bf16, tiling), Device::open(device))({x}, {q, scale});
      return std::vector<uint8_t>(q.data<uint8_t>(), q.data<uint8_t>() + q.count());
    };
    const auto held = codes("cpu:0", {1, 2048, 0, false});
    EXPECT_EQ(codes("emu:0", {1, 512, 512, true, false}), held);
    EXPECT_EQ(codes("emu:0", {1, 2048, 512, true, true}), held);
  }
}

INSTANTIATE_TEST_SUITE_P(Library, EmulatedLibrary, testing::ValuesIn(kernels::kernel_list()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tw::test
