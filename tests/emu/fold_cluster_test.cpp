#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tw/emu/device.h"
#include "tw/jit/kernel.h"
#include "tw/kernels/entry.h"
#include "tw/lang/lang.h"

namespace tw::test {
namespace {

using kernels::KernelEntry;
using kernels::Problem;

/// Blocks that fold rows together, fewer and more warps of them than a warp has lanes.
const char* const kMappings[] = {"cuda1 cluster=2 warps=1", "cuda1 cluster=4 warps=1",
                                 "cuda1 cluster=8 warps=2", "cuda1 cluster=4 warps=16"};

class FoldingClusters : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { register_emulator(); }
};

bool is_of_clusters(const Kernel& kernel, const std::vector<TensorView>& in,
                    const std::vector<TensorView>& out) {
  return kernel.source(in, out).find("__cluster_dims__(") != std::string::npos;
}

TEST_P(FoldingClusters, GiveWhatBlocksGive) {
  const Device device = Device::open("emu:0");
  check::Sweep sweep({.values = {check::Values::uniform, check::Values::special},
                      .refuses_aliases = false,
                      .whole = false});
  for (const char* name : {"softmax", "layernorm", "add_rmsnorm", "row_reduce", "cross_entropy"}) {
    const KernelEntry& entry = kernels::kernel_named(name);
    for (const int64_t n : {2048, 1701}) {
      const Problem p = complete(entry, {{{"m", 3}, {"n", n}}, f32, {}});
      const CompileOptions options{.mapping = parse_mapping(GetParam())};
      const Kernel kernel = compile(entry.trace(p, device.target()), device, options);
      sweep.add(
          fmt::format("{} {}", name, to_string(p)),
          {.arguments = entry.arguments(p),
           .run = [&](const auto& in, const auto& out) { kernel(in, out); },
           .reference = [&](std::span<const TensorView> in) { return entry.reference(p, in); }});
    }
  }
  EXPECT_EQ(sweep.verdict(), "");
}

/// The place of the first of the largest elements.
Program first_most() {
  Trace k("first_most");
  Index M = k.dim("M"), N = k.dim("N");
  TensorRef X = k.input("X", f32, {M, N});
  TensorRef Y = k.output("Y", i32, {M});
  const Index m = k.grid(M)[0];
  Tile x = load(X.tile({m, 0}, {1, 2048}), {.pad = -INFINITY});
  const auto [most, at] =
      reduce({x, cast(k.iota({1, 2048}, 1), i32)}, 1, [](const Tiles<2>& a, const Tiles<2>& b) {
        Tile later = (a[0] < b[0]) | (eq(a[0], b[0]) & (b[1] < a[1]));
        return Tiles<2>{where(later, b[0], a[0]), where(later, b[1], a[1])};
      });
  store(Y.tile({m}, {1}), reshape(at, {1}));
  return k.finish();
}

TEST_P(FoldingClusters, CombineTuples) {
  const Device device = Device::open("emu:0");
  const Kernel kernel =
      compile(first_most(), device, CompileOptions{.mapping = parse_mapping(GetParam())});
  constexpr int64_t kRows = 4, kColumns = 2000;
  const Tensor x = host_tensor(f32, {kRows, kColumns}), y = host_tensor(i32, {kRows});
  for (int64_t i = 0; i < x.count(); ++i) set(x, i, static_cast<double>(i * 7 % 13));
  for (const int64_t at : {1999, 640, 641}) set(x, kColumns + at, 99);
  set(x, 2 * kColumns + 1024, 99);
  kernel({x}, {y});
  EXPECT_TRUE(is_of_clusters(kernel, {x}, {y}));
  const int32_t* first = y.data<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(first, first + kRows), (std::vector<int32_t>{11, 640, 1024, 4}));
}

INSTANTIATE_TEST_SUITE_P(Mappings, FoldingClusters, testing::ValuesIn(kMappings),
                         [](const auto& info) { return fmt::format("{}", info.index); });

}  // namespace
}  // namespace tw::test
