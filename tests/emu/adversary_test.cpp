#include <gtest/gtest.h>

#include "tests/emu/pipelines.h"

namespace tw::test {
namespace {

/// What chance must not hide: places, schedules and registers as bad as they can be.

Verdict fault_of(const std::string& kernel, const char* config, const std::string& part = "",
                 const std::string& by = "") {
  Pipeline p = pipeline(kernel, kernel_text(kernel), Config(config));
  if (!part.empty()) p.launch = changed(p.launch, part, by);
  return first_fault(p, 8);
}

TEST(Adversary, LeavesNothingInRegisters) {
  const char* text = R"(
struct Args { void* data[1]; i64 dims[1]; i64 strides[1]; };
extern "C" __global__ void tw_k(const __grid_constant__ Args args) {
  f32 sums[4];
  if (args.dims[0] > 4) sums[1] = 0;
  ((f32*)args.data[0])[tw_thread()] = sums[tw_thread() % 4];
})";
  const Case c = make_case(text, 1, 32, 0, {host_tensor(f32, {32})}, "w", {32});
  std::vector<Tensor> out;
  ASSERT_TRUE(run(c, {}, &out).clean());
  for (int64_t i = 0; i < 32; ++i) EXPECT_EQ(get(out[0], i) == 0, i % 4 == 1) << i;
}

TEST(Adversary, PutsSharedMemoryAtBothEnds) {
  const char *launch = "m=16 n=32", *rounding = "(u64)tw_shared() + 1023";
  EXPECT_EQ(fault_of("ring", launch).text, "");
  const Verdict nothing = fault_of("ring", launch, rounding, "(u64)tw_shared() + 1024");
  EXPECT_EQ(nothing.kind, Verdict::Kind::report);
  EXPECT_NE(nothing.text.find("seed 3: out of bounds"), std::string::npos) << nothing.text;
  const Verdict most =
      fault_of("ring", launch, "empty = full + STAGES;", "empty = full + STAGES + 1;");
  EXPECT_NE(most.text.find("seed 7: out of bounds"), std::string::npos) << most.text;
}

/// The third group's barrier of its own is the one where the second tells it that it is its turn:
/// that shows only when it is a whole tile late.
TEST(Adversary, StarvesTheThirdConsumer) {
  const char* launch = "nwg=3 bnk=16 sq=200 sk=72 heads=3";
  EXPECT_EQ(fault_of("fa", launch).text, "");
  const Verdict v = fault_of("fa", launch, "tw_named_sync(5 + w, 128);  // O is free",
                             "tw_named_sync(5 - w, 128);  // O is free");
  EXPECT_EQ(v.kind, Verdict::Kind::report) << v.text;
  EXPECT_NE(v.text.find("with another number of threads"), std::string::npos) << v.text;
}

}  // namespace
}  // namespace tw::test
