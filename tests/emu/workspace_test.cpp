// Memory that instances share, and instances that wait for those before them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tw/emit/cuda/emit_cuda.h"
#include "tw/emu/device.h"
#include "tw/emu/emulator.h"
#include "tw/interp/interpreter.h"
#include "tw/jit/kernel.h"
#include "tw/kernels/scan/scan.h"
#include "tw/lang/lang.h"
#include "tw/passes/pipeline.h"

namespace tw::test {
namespace {

using kernels::CumsumForm;

/// An instance tells the next one a tile: the tile first, then that it is there.
Program relay(int cols, MemoryOrder published, MemoryOrder awaited) {
  Trace k("relay");
  Index N = k.dim("N");
  TensorRef X = k.input("X", i32, {N, cols}), Y = k.output("Y", i32, {N, cols});
  TensorRef flags = k.workspace("flags", i32, {N});
  auto [n] = k.grid(N);
  k.in_order();
  Tile seen = cast(k.full(i64, {}, 0) < n, i32);  // the first waits for nobody
  seen = 1 - seen;
  While waiting(k);
  while (waiting(eq(seen, 0)))
    seen = atomic_fetch(flags, {n - 1}, 0, AtomicOp::or_, {.order = awaited});
  Tile sum = load(X.tile({n, 0}, {1, cols})) + load(Y.window({n - 1, 0}, {1, cols}));
  store(Y.tile({n, 0}, {1, cols}), sum);
  atomic(flags, {n}, 1, AtomicOp::exch, {.order = published});
  return k.finish();
}

EmittedCuda emulated(Program p) {
  canonicalize(p);
  Specialisation s = contiguous_facts(p);
  const Mapping mapping{"cuda1", {}};
  run_passes(p, cuda_passes(), {machine_named("generic"), mapping, s}, true);
  return emit_cuda(p, s, gpu_named("sm_90a"), mapping, false, cpu::Thread::emulated);
}

/// All arguments of a launch, workspace zeroed; integers in those that are read.
std::vector<Tensor> tensors_for(const LaunchSpec& spec, const std::vector<int64_t>& dims) {
  std::vector<Tensor> all;
  for (const LaunchSpec::Arg& a : spec.args) {
    std::vector<int64_t> extents;
    for (const Expr& e : a.dims)
      extents.push_back(evaluate(e, [&](Symbol s) { return dims[static_cast<size_t>(s.id)]; }));
    all.push_back(host_tensor(a.dtype, extents));
    for (int64_t i = 0; i < all.back().count(); ++i)
      set(all.back(), i, a.workspace ? 0 : static_cast<double>(i * 7 % 5 - 1));
  }
  return all;
}

EmuReport run_once(const EmittedCuda& e, const std::vector<Tensor>& tensors,
                   const std::vector<int64_t>& dims, const EmuOptions& options) {
  const std::vector<TensorView> views(tensors.begin(), tensors.end());
  return run_emulated(e.text, e.launch, views, dims, options);
}

TEST(Workspace, ATileIsToldByReleaseAndAcquire) {
  const EmittedCuda e = emulated(relay(40, MemoryOrder::release, MemoryOrder::acquire));
  const std::vector<int64_t> dims{6};
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const std::vector<Tensor> t = tensors_for(e.launch, dims);
    const EmuReport report = run_once(e, t, dims, {.seed = seed, .resident = 3});
    ASSERT_TRUE(report.clean()) << report.text;
    for (int64_t c = 0; c < 40; ++c) {
      double sum = 0;
      for (int64_t n = 0; n < 6; ++n) {
        sum += get(t[0], n * 40 + c);
        ASSERT_EQ(get(t[1], n * 40 + c), sum) << n << " " << c;
      }
    }
  }
}

TEST(Workspace, WithoutOrderThatIsARace) {
  for (const auto& [published, awaited] : {std::pair{MemoryOrder::relaxed, MemoryOrder::acquire},
                                           std::pair{MemoryOrder::release, MemoryOrder::relaxed}}) {
    const EmittedCuda e = emulated(relay(40, published, awaited));
    const EmuReport report = run_once(e, tensors_for(e.launch, {6}), {6}, {});
    ASSERT_FALSE(report.clean());
    EXPECT_EQ(*report.fault, EmuFault::race) << report.text;
  }
}

/// Instances that begin in another order than that of their numbers wait for ever.
TEST(Workspace, BlocksThatTakeNoTicketMayWaitForEver) {
  EmittedCuda e = emulated(relay(40, MemoryOrder::release, MemoryOrder::acquire));
  const std::string taken = "const i64 instance = (i64)*ticket;";
  const size_t at = e.text.find(taken);
  ASSERT_NE(at, std::string::npos);
  e.text.replace(at, taken.size(), "const i64 instance = instances - 1 - (i64)*ticket;");
  const EmuReport report =
      run_once(e, tensors_for(e.launch, {6}), {6}, {.resident = 2, .blocks = 2});
  ASSERT_FALSE(report.clean());
  EXPECT_EQ(*report.fault, EmuFault::deadlock) << report.text;
}

class SharedRows : public testing::TestWithParam<CumsumForm> {};

/// Sums of integers are exact: every schedule gives them, in the emulator, on a CPU and in the
/// interpreter.
TEST_P(SharedRows, AreThoseOfEveryScheduleAndDevice) {
  register_emulator();
  const CumsumForm form = GetParam();
  const Program p = kernels::cumsum_shared_rows(form, {.cols = 64, .group = 4});
  const Kernel plain = compile(kernels::cumsum(form, {}), Device::open("cpu:0"));
  const Kernel shared = compile(p, Device::open("cpu:0"));
  const EmittedCuda e = emulated(p);
  for (const auto& [m, n] : {std::pair{1, 1000}, {3, 257}, {2, 64}, {1, 5}}) {
    std::vector<Tensor> t = tensors_for(e.launch, {m, n});
    const std::vector<int64_t> dims{m, n};
    Tensor want = host_tensor(form.dtype, dims);
    plain({t[0]}, {want});
    const auto expect = [&](const char* who) {
      for (int64_t i = 0; i < want.count(); ++i)
        ASSERT_EQ(get(t[1], i), get(want, i)) << who << " " << m << " x " << n << " at " << i;
    };
    shared({t[0]}, {t[1]});
    expect("cpu");
    const Interpretation run = interpret(p, {t[0]}, {t[1]}, {}, {.mode = InterpretMode::bounded});
    for (int64_t i = 0; i < want.count(); ++i)
      ASSERT_LE(std::abs(run.outputs[0][static_cast<size_t>(i)].f - get(want, i)),
                run.outputs[0][static_cast<size_t>(i)].bound);
    for (uint64_t seed = 0; seed < 6; ++seed) {
      t = tensors_for(e.launch, dims);
      const EmuOptions options{.seed = seed,
                               .resident = 1 + static_cast<int>(seed) % 4,
                               .blocks = seed % 2 == 0 ? 0 : 4};
      const EmuReport report = run_once(e, t, dims, options);
      ASSERT_TRUE(report.clean()) << report.text;
      expect("emu");
    }
  }
}

std::string form_of(const testing::TestParamInfo<CumsumForm>& info) {
  return fmt::format("{}{}{}", name(info.param.dtype), info.param.reverse ? "reverse" : "",
                     info.param.exclusive ? "exclusive" : "");
}

INSTANTIATE_TEST_SUITE_P(Forms, SharedRows,
                         testing::Values(CumsumForm{f32, false, false},
                                         CumsumForm{f32, true, false}, CumsumForm{f32, false, true},
                                         CumsumForm{bf16, true, true}),
                         form_of);

/// As the library cuts long rows.
TEST(Workspace, ALongRowIsShared) {
  const EmittedCuda e = emulated(kernels::cumsum_shared_rows({}, {}));
  const std::vector<int64_t> dims{1, 3 * kernels::CumsumChunks().cols + 77};
  const std::vector<Tensor> t = tensors_for(e.launch, dims);
  const EmuReport report = run_once(e, t, dims, {.resident = 2});
  ASSERT_TRUE(report.clean()) << report.text;
  double sum = 0;
  for (int64_t i = 0; i < dims[1]; ++i) {
    sum += get(t[0], i);
    ASSERT_EQ(get(t[1], i), sum) << i;
  }
}

/// Sums that round depend on which are added first: that is the same in every schedule.
TEST(Workspace, SumsAreTheSameBitForBit) {
  const EmittedCuda e = emulated(kernels::cumsum_shared_rows({}, {.cols = 64, .group = 4}));
  const std::vector<int64_t> dims{1, 1500};
  std::vector<double> first;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const std::vector<Tensor> t = tensors_for(e.launch, dims);
    for (int64_t i = 0; i < 1500; ++i) set(t[0], i, 1.0 / static_cast<double>(1 + i * 37 % 101));
    ASSERT_TRUE(run_once(e, t, dims, {.seed = seed}).clean());
    const std::vector<double> got = to_doubles(t[1]);
    if (seed == 0) first = got;
    EXPECT_EQ(got, first) << seed;
  }
}

}  // namespace
}  // namespace tw::test
