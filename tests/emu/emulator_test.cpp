#include <cfloat>
#include <cmath>
#include <gtest/gtest.h>

#include "tests/emu/run.h"
#include "tests/support/expect_error.h"

namespace tw::test {
namespace {

constexpr uint64_t kSeeds = 8;

/// Runs clean for every seed, with and without all blocks at once, and `check` accepts the output.
template <class F>
void expect_clean(const Case& c, F&& check) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const int resident : {0, 1}) {
      std::vector<Tensor> out;
      const EmuReport r = run(c, {.seed = seed, .resident = resident}, &out);
      ASSERT_TRUE(r.clean()) << "seed " << seed << ": " << r.text;
      check(out);
    }
  }
}

void expect_softmax(const Case& c, const std::vector<Tensor>& out) {
  const int64_t rows = c.dims[0], n = c.dims[1];
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(get(c.tensors[0], r * n + i));
    for (int64_t i = 0; i < n; ++i) {
      const double want = std::exp(get(c.tensors[0], r * n + i)) / sum;
      EXPECT_LE(std::abs(get(out[1], r * n + i) - want),
                want * static_cast<double>(n) * FLT_EPSILON);
    }
  }
}

TEST(Emulator, SoftmaxOfRows) {
  const Case c = softmax_case(5, 300);
  expect_clean(c, [&](const auto& out) { expect_softmax(c, out); });
}

TEST(Emulator, BlocksThatTakeSeveralRows) {
  const Case c = softmax_case(7, 100);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    std::vector<Tensor> out;
    const EmuReport r = run(c, {.seed = seed, .blocks = 2}, &out);
    ASSERT_TRUE(r.clean()) << r.text;
    expect_softmax(c, out);
  }
}

TEST(Emulator, Transpose) {
  const Case c = transpose_case(70, 45);
  expect_clean(c, [&](const auto& out) {
    for (int64_t i = 0; i < 70; ++i) {
      for (int64_t j = 0; j < 45; ++j) {
        ASSERT_EQ(get(out[1], j * 70 + i), get(c.tensors[0], i * 45 + j));
      }
    }
  });
}

TEST(Emulator, MatmulOfTiles) {
  const Case c = matmul_case(64, 16, 80);
  expect_clean(c, [&](const auto& out) {
    for (int64_t i = 0; i < 64; ++i) {
      for (int64_t j = 0; j < 16; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 80; ++k) {
          sum += get(c.tensors[0], i * 80 + k) * get(c.tensors[1], j * 80 + k);
        }
        ASSERT_EQ(get(out[2], i * 16 + j), sum);
      }
    }
  });
}

TEST(Emulator, Histogram) {
  const Case c = histogram_case(1000, 37);
  expect_clean(c, [&](const auto& out) {
    std::vector<double> want(37);
    for (int64_t i = 0; i < 1000; ++i) ++want[static_cast<size_t>(get(c.tensors[0], i))];
    for (int64_t b = 0; b < 37; ++b) ASSERT_EQ(get(out[1], b), want[static_cast<size_t>(b)]);
  });
}

TEST(Emulator, BlocksThatWaitForSmallerTickets) {
  const Case c = chain_case(40);
  expect_clean(c, [&](const auto& out) {
    double sum = 0;
    for (int64_t i = 0; i < 40; ++i) {
      sum += get(c.tensors[0], i);
      ASSERT_EQ(get(out[1], i), sum);
    }
  });
}

const char* const kShiftText = R"(
struct Args { void* data[1]; i64 strides[1]; };
extern "C" __global__ void tw_k(const __grid_constant__ Args args) {
  ((u32*)args.data[0])[tw_thread()] = 1u << (tw_thread() + 1);
}
)";

TEST(Emulator, ShiftsByAllBitsAreReported) {
  const auto report = [](int threads) {
    return run(make_case(kShiftText, 1, threads, 0, {host_tensor(u32, {32})}, "w", {}), {});
  };
  EXPECT_TRUE(report(31).clean());
  const EmuReport r = report(32);
  EXPECT_EQ(r.fault, EmuFault::out_of_bounds);
  EXPECT_NE(r.text.find("thread 31"), std::string::npos) << r.text;
  EXPECT_NE(r.text.find("shifts by as many bits as there are"), std::string::npos) << r.text;
}

const char* const kPollText = R"(
struct Args { void* data[1]; i64 strides[1]; };
extern "C" __global__ void tw_k(const __grid_constant__ Args args) {
  i32* const flag = (i32*)tw_shared();
  if (tw_thread() == 0) *flag = 0;
  tw_sync();
  if (tw_thread() == 32) tw_atomic_add_relaxed_device(flag, 1);
  if (tw_thread() == 0) while (tw_atomic_add_relaxed_device(flag, 0) == 0) {}
  tw_sync();
  ((u32*)args.data[0])[tw_block() * 256 + tw_thread()] = 1;
}
)";

/// A thread that waits in a loop for another of its block, which a schedule starves, is no
/// deadlock; for one that never comes it is.
TEST(Emulator, LoopsThatWaitForStarvedThreadsEnd) {
  for (const int64_t blocks : {1, 4}) {
    const Case c =
        make_case(kPollText, blocks, 256, 16, {host_tensor(u32, {blocks * 256})}, "w", {});
    for (uint64_t seed = 0; seed < 3 * kSeeds; ++seed) {
      const EmuReport r = run(c, {.seed = seed});
      ASSERT_TRUE(r.clean()) << "seed " << seed << ": " << r.text;
    }
    const EmuReport r = run(changed(c, "== 32)", "== 256)"), {});
    EXPECT_EQ(r.fault, EmuFault::deadlock) << r.text;
  }
}

const char* const kEarlyText = R"(
struct Args { void* data[1]; i64 strides[1]; };
extern "C" __global__ void tw_k(const __grid_constant__ Args args) {
  if (tw_thread() < 32) tw_grid_dependency_sync();
  tw_sync();
  ((u32*)args.data[0])[tw_thread()] = 1;
}
)";

/// What begins early waits before it comes to memory, or is behind a thread of its block that does.
TEST(Emulator, EarlyLaunchesWaitForThoseBefore) {
  Case c = make_case(kEarlyText, 1, 64, 0, {host_tensor(u32, {64})}, "w", {});
  c.spec.early = true;
  expect_clean(c, [](const auto&) {});
  const Case no_barrier = changed(c, "tw_sync();", ";");
  const EmuReport r = run(no_barrier, {});
  EXPECT_EQ(r.fault, EmuFault::race);
  EXPECT_NE(r.text.find("nothing waits for the launches before"), std::string::npos) << r.text;
  EXPECT_EQ(r.lines, (std::vector<int>{line_with(no_barrier, "= 1;")}));
  Case late = no_barrier;
  late.spec.early = false;
  expect_clean(late, [](const auto&) {});
}

TEST(Emulator, EmptyGridRunsNothing) { EXPECT_TRUE(run(softmax_case(0, 10), {}).clean()); }

TEST(Emulator, SpecAndTextMustFit) {
  Case c = softmax_case(1, 10);
  const std::vector<TensorView> one = {c.tensors[0]};
  TW_EXPECT_ERROR(InternalError, "does not fit its spec",
                  [&] { run_emulated(with_prelude(c.program), c.spec, one, c.dims); });
  c.spec.entry = "tw_other";
  TW_EXPECT_ERROR(InternalError, "tw_other", [&] { run(c, {}); });
}

}  // namespace
}  // namespace tw::test
