#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <numeric>

#include "tests/emu/run.h"
#include "tests/support/expect_error.h"

namespace tw::test {
namespace {

/// A box of a tensor of u16, with where it lies; the last axis is the fastest.
struct Box {
  std::vector<int64_t> dims;
  std::vector<int> box, at;
  int swizzle;
};

std::string joined(std::vector<int> values) {
  return fmt::format("{}", fmt::join(values.rbegin(), values.rend(), ", "));
}

std::vector<int> reversed(const std::vector<int>& v) { return {v.rbegin(), v.rend()}; }

int64_t product_of(const std::vector<int>& v) {
  return std::accumulate(v.begin(), v.end(), int64_t{1}, std::multiplies<>());
}

/// Arguments: the tensor, and a run with the bytes of shared memory.
Case box_case(const Box& b, const std::string& body, const std::string& uses) {
  const int64_t count = product_of(b.box), rank = static_cast<int64_t>(b.dims.size());
  Tensor x = host_tensor(u16, b.dims), raw = host_tensor(u16, {count});
  for (int64_t i = 0; i < x.count(); ++i) set(x, i, static_cast<double>(i + 1));
  for (int64_t i = 0; i < count; ++i) set(raw, i, static_cast<double>(1000 + i));
  const std::string text = fmt::format(
      R"(
struct Args {{ void* data[2]; i64 dims[1]; i64 strides[{}]; TwTensorMap map; }};
extern "C" __global__ void __launch_bounds__(32) tw_k(const __grid_constant__ Args args) {{
  u8* shared = (u8*)(((u64)tw_shared() + 1023) & ~1023ul);
  u16* box = (u16*)shared;
  u16* raw = (u16*)args.data[1];
  u64* full = (u64*)(shared + 16384);
  const int thread = tw_thread();
{}}}
)",
      rank + 1, body);
  Case c = make_case(text, 1, 32, 1024 + 16384 + 8, {x, raw}, uses, {count});
  c.spec.tensor_maps = {{0, b.swizzle, reversed(b.box)}};
  return c;
}

/// Where element i of the box lies in shared memory, by the pictures of swizzles: pieces of 16
/// bytes change places with the number of the line of 128 bytes.
int64_t place_of(const Box& b, int64_t i) {
  const int64_t byte = 2 * i, pieces = b.swizzle / 16;
  if (pieces == 0) return i;
  const int64_t piece = byte / 16 % pieces ^ byte / 128 % pieces;
  return (byte / b.swizzle * b.swizzle + piece * 16 + byte % 16) / 2;
}

/// The tensor's element that element i of the box stands for; -1 outside.
int64_t element_of(const Box& b, int64_t i) {
  int64_t index = 0, step = 1;
  for (size_t k = b.dims.size(); k-- > 0;) {
    const int64_t at = b.at[k] + i % b.box[k];
    i /= b.box[k];
    if (at < 0 || at >= b.dims[k]) return -1;
    index += at * step;
    step *= b.dims[k];
  }
  return index;
}

const std::vector<Box>& boxes() {
  static const std::vector<Box> all = {
      {{40}, {16}, {8}, 0},
      {{40}, {16}, {-8}, 0},
      {{40}, {16}, {32}, 32},
      {{9, 32}, {8, 16}, {-2, 24}, 0},
      {{9, 32}, {8, 16}, {1, 8}, 32},
      {{9, 32}, {16, 32}, {-4, -8}, 64},
      {{20, 72}, {16, 64}, {9, 16}, 128},
      {{3, 5, 16}, {2, 4, 16}, {-1, 2, 0}, 32},
      {{2, 3, 4, 16}, {2, 2, 3, 8}, {1, -1, 2, 8}, 0},
      {{2, 2, 3, 4, 64}, {1, 2, 2, 3, 64}, {1, 1, -1, 2, -32}, 128},
  };
  return all;
}

class Tma : public testing::TestWithParam<size_t> {};

TEST_P(Tma, LoadsBoxesAndZeros) {
  const Box& b = boxes()[GetParam()];
  const int64_t count = product_of(b.box);
  const Case c = box_case(b,
                          fmt::format(R"(  if (thread == 0) {{
    tw_mbarrier_init(full, 1);
    tw_mbarrier_fence_init();
  }}
  tw_sync();
  if (thread == 0) {{
    tw_mbarrier_expect(full, {});
    tw_tma_load_{}d(box, &args.map, full, {});
    tw_mbarrier_arrive(full);
  }}
  tw_mbarrier_wait(full, 0);
  for (int i = thread; i < {}; i += 32) raw[i] = box[i];
)",
                                      2 * count, b.dims.size(), joined(b.at), count),
                          "rw");
  for (uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<Tensor> out;
    const EmuReport r = run(c, {.seed = seed}, &out);
    ASSERT_TRUE(r.clean()) << r.text;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t from = element_of(b, i);
      ASSERT_EQ(get(out[1], place_of(b, i)), from < 0 ? 0 : static_cast<double>(from + 1)) << i;
    }
  }
}

TEST_P(Tma, StoresWhatIsInside) {
  Box b = boxes()[GetParam()];
  for (int& at : b.at) at = std::max(at, 0);  // hardware stores from no other place
  const int64_t count = product_of(b.box);
  const Case c = box_case(b,
                          fmt::format(R"(  for (int i = thread; i < {}; i += 32) box[i] = raw[i];
  tw_fence_async();
  tw_sync();
  if (thread == 0) {{
    tw_tma_store_{}d(&args.map, box, {});
    tw_bulk_commit();
    tw_bulk_wait<0>();
  }}
)",
                                      count, b.dims.size(), joined(b.at)),
                          "br");
  for (uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<Tensor> out;
    const EmuReport r = run(c, {.seed = seed}, &out);
    ASSERT_TRUE(r.clean()) << r.text;
    std::vector<double> want;
    for (int64_t i = 0; i < out[0].count(); ++i) want.push_back(static_cast<double>(i + 1));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t to = element_of(b, i);
      if (to >= 0) want[static_cast<size_t>(to)] = 1000 + static_cast<double>(place_of(b, i));
    }
    for (int64_t i = 0; i < out[0].count(); ++i)
      ASSERT_EQ(get(out[0], i), want[static_cast<size_t>(i)]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Tma, testing::Range(size_t{0}, boxes().size()));

TEST(TmaMaps, WhatHardwareDoesNotTakeIsRefused) {
  const auto refused = [](Box b, const std::string& why) {
    const Case c = box_case(b, "", "rr");
    TW_EXPECT_ERROR(UserError, "argument 'x' has no tensor map: " + why, [&] { run(c, {}); });
  };
  refused({{8, 16}, {257, 16}, {0, 0}, 0}, "a box of 257 along an axis: wanted 1 to 256");
  refused({{8, 12}, {4, 8}, {0, 0}, 0}, "a stride of 24 bytes: wanted a multiple of 16");
  refused({{8, 16}, {4, 4}, {0, 0}, 0}, "a box of 8 bytes along the fastest axis");
  refused({{8, 16}, {4, 16}, {0, 0}, 64}, "a swizzle of 64 bytes of rows of 32");
  refused({{8, 16}, {16}, {0, 0}, 0}, "a box of 1 axes");
}

/// One thread brings a box; `wrong` is a line of the text by another.
EmuReport report_of(const std::string& line, const std::string& wrong) {
  const Box b{{8, 16}, {4, 16}, {0, 0}, 0};
  const Case c = box_case(b, R"(  if (thread == 0) {
    tw_mbarrier_init(full, 1);
    tw_mbarrier_fence_init();
  }
  tw_sync();
  if (thread == 0) {
    tw_mbarrier_arrive_expect(full, 128);
    tw_tma_load_2d(box, &args.map, full, 0, 0);
  }
  tw_mbarrier_wait(full, 0);
  raw[thread] = box[thread];
)",
                          "rw");
  return run(changed(c, line, wrong), {.seed = 1});
}

TEST(TmaReports, NameWhatIsWrong) {
  struct Wrong {
    const char *line, *by, *fault, *text;
  };
  for (const Wrong& w : std::vector<Wrong>{
           {"full, 128", "full, 144", "deadlock", "0 of 1 arrivals and 16 bytes are missing"},
           {"full, 1);", "full, 2);", "deadlock", "1 of 2 arrivals and 0 bytes are missing"},
           {"tw_tma_load_2d(box,", "tw_tma_load_2d(box + 8,", "misaligned", "128 bytes"},
           {"tw_tma_load_2d(box, &args.map, full, 0, 0)",
            "tw_tma_load_3d(box, &args.map, full, 0, 0, 0)", "barrier",
            "a box of 3 axes of a tensor of 2"},
           {"full, 0, 0)", "full, 4, 0)", "barrier", "from byte 8 of the fastest axis"},
           {"tw_tma_load_2d(box, &args.map, full, 0, 0)", "tw_tma_store_2d(&args.map, box, 0, -1)",
            "barrier", "at a negative coordinate"},
           {"tw_mbarrier_wait(full, 0);", "", "uninitialised read", "nothing has written"},
           {"tw_mbarrier_fence_init();", "", "barrier", "tw_mbarrier_fence_init is not called"},
           {"raw[thread] = box[thread];", "raw[thread] = box[8192 + thread % 4];", "barrier",
            "a barrier is there"},
       }) {
    const EmuReport r = report_of(w.line, w.by);
    ASSERT_FALSE(r.clean()) << w.by;
    EXPECT_NE(r.text.find(w.text), std::string::npos) << r.text;
    EXPECT_STREQ(name(*r.fault), w.fault) << r.text;
  }
}

}  // namespace
}  // namespace tw::test
