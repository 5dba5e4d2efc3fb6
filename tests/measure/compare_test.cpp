#include "tw/measure/compare.h"

#include <cmath>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "tests/support/burners.h"
#include "tests/support/expect_error.h"

namespace tw::measure {
namespace {

using testing::HasSubstr;

Job doubling(int64_t n = 1000) {
  Job job;
  job.task = {"double", {}, 1};
  job.inputs = {{"X", f32, {n}, {}}};
  job.outputs = {{"Y", f32, {n}, {}}};
  job.fill = [](int, const TensorView& to, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int64_t i = 0; i < to.dims[0]; ++i)
      static_cast<float*>(to.data)[i * to.strides[0]] = static_cast<float>(random() % 1000 + 1);
  };
  job.verify = [](const TensorSet& set, uint64_t) {
    const TensorView &x = set.inputs[0], &y = set.outputs[0];
    for (int64_t i = 0; i < y.dims[0]; ++i)
      if (static_cast<float*>(y.data)[i] != 2 * static_cast<float*>(x.data)[i * x.strides[0]])
        return HUGE_VAL;
    return 0.0;
  };
  return job;
}

Settings quick() {
  Settings s;
  s.worker = TW_WORKER;
  s.blocks = 4;
  s.slice_s = 0.005;
  s.repeats = 100;  // of slices in which the machine did something else
  s.timeout_s = 20;
  return s;
}

Measured alone(const std::string& kind, const Settings& settings = quick()) {
  return compare(doubling(), {{"x", kind, "100"}}, settings).all[0];
}

TEST(Compare, HonestContestantsPass) {
  const Comparison c =
      compare(doubling(), {{"a", "honest", "20000"}, {"b", "honest", "180000"}}, quick());
  ASSERT_EQ(c.all.size(), 2u);
  for (const Measured& m : c.all) {
    EXPECT_EQ(m.failure, "");
    EXPECT_EQ(m.about, "doubler honest");
    EXPECT_EQ(m.block_us.size(), 4u);
    EXPECT_GE(m.verified, 8);
    EXPECT_EQ(m.max_error, 0);
  }
  EXPECT_GT(c.ratio(0, 1).low, 8);
  EXPECT_LT(c.ratio(0, 1).high, 10);
  EXPECT_EQ(c.sets, 3);
  EXPECT_NE(c.seed, 0u);
}

TEST(Compare, BlocksAreAddedWhileTheRatioIsUncertain) {
  Settings settings = quick();
  settings.most_blocks = 7;
  settings.width = 0;
  const std::vector<ContestantSpec> two = {{"a", "honest", "20000"}, {"b", "honest", "180000"}};
  EXPECT_EQ(compare(doubling(), two, settings).all[0].block_us.size(), 7u);
  settings.width = 100;
  EXPECT_EQ(compare(doubling(), two, settings).all[0].block_us.size(), 4u);
  EXPECT_EQ(compare(doubling(), {two[0]}, settings).all[0].block_us.size(), 4u);
}

TEST(Compare, SlowOnesAreLeftBehind) {
  Settings settings = quick();
  settings.leave_behind = 3;
  const Comparison c = compare(doubling(),
                               {{"ours", "honest", "900000"},
                                {"a", "honest", "20000"},
                                {"b", "honest", "30000"},
                                {"slow", "honest", "180000"}},
                               settings);
  for (int i : {0, 1, 2}) EXPECT_EQ(c.all[i].failure, "");
  EXPECT_THAT(c.all[3].failure, HasSubstr("left behind"));
  EXPECT_EQ(c.all[3].block_us.size(), 2u);
}

TEST(Compare, SeesASlowdownOfFivePercentAndNoOther) {
  const Comparison c = compare(
      doubling(16),
      {{"a", "honest", "20000"}, {"same", "honest", "20000"}, {"b", "honest", "21000"}}, quick());
  for (const Measured& m : c.all) ASSERT_EQ(m.failure, "");
  EXPECT_EQ(verdict(c.ratio(2, 0)), Verdict::slower) << c.ratio(2, 0).median;
  EXPECT_EQ(verdict(c.ratio(1, 0)), Verdict::equal) << c.ratio(1, 0).median;
}

TEST(Compare, WrongOutputsAreRejected) {
  // forgets: one element wrong. skips, stops: some calls do nothing. remembers: answers another
  // set's question.
  for (const char* kind : {"forgets", "skips", "stops", "remembers"})
    EXPECT_THAT(alone(kind).failure, HasSubstr("contestant 'x' is wrong: a timed output has inf"))
        << kind;
}

TEST(Compare, BrokenWorkersAreErrorsAndNoHang) {
  EXPECT_THAT(alone("crashes").failure, HasSubstr("ended by signal 11"));
  EXPECT_THAT(alone("exits").failure, HasSubstr("ended with status 7"));
  EXPECT_THAT(alone("throws").failure, HasSubstr("the device is on fire"));
  EXPECT_FALSE(alone("throws").refused);
  EXPECT_THAT(alone("refuses").failure, HasSubstr("does no such thing"));
  EXPECT_THAT(alone("nobody").failure, HasSubstr("unknown kind of contestant 'nobody'"));
  Settings impatient = quick();
  impatient.timeout_s = 1;
  EXPECT_THAT(alone("hangs", impatient).failure, HasSubstr("no answer within 1 s"));
  Settings without = quick();
  without.worker = "/nonexistent/worker";
  EXPECT_THAT(alone("honest", without).failure, HasSubstr("ended with status 127"));
}

TEST(Compare, OneFailureDoesNotStopTheOthers) {
  const Comparison c =
      compare(doubling(), {{"a", "honest", "20000"}, {"b", "crashes", "100"}}, quick());
  EXPECT_EQ(c.all[0].failure, "");
  EXPECT_EQ(c.all[0].block_us.size(), 4u);
  EXPECT_NE(c.all[1].failure, "");
}

TEST(Compare, ColdModeCyclesThroughEnoughMemory) {
  Settings s = quick();
  s.cold_bytes = 8 << 20;
  s.slice_s = 0.05;
  Job job = doubling(100000);
  job.inputs[0].strides = {2};
  const Comparison c = compare(job, {{"a", "honest", "0"}}, s);
  EXPECT_EQ(c.all[0].failure, "");
  EXPECT_EQ(c.sets, (8 << 20) / 1200000 + 1);
}

TEST(Compare, OtherLoadIsNoticed) {
  const test::Burners other(1);
  Settings s = quick();
  s.slice_s = 0.05;
  s.repeats = 1;
  s.blocks = 2;
  const Comparison c = compare(doubling(), {{"a", "honest", "0"}}, s);
  EXPECT_EQ(c.all[0].failure, "");
  EXPECT_EQ(c.repeated, 1);
  EXPECT_GE(c.disturbed, 1);
}

TEST(Compare, TooManyThreadsAreAnError) {
  Job job = doubling();
  job.task.threads = 100000;
  EXPECT_THAT(compare(job, {{"a", "honest", "0"}}, quick()).all[0].failure,
              HasSubstr("100000 threads were asked for"));
}

TEST(Peer, PlugInsAreContestants) {
  Job job = doubling();
  job.task.options = {{"a", "1"}, {"b", "2"}};
  const Measured m = compare(job, {{"plug", "peer", TW_PEER}}, quick()).all[0];
  EXPECT_EQ(m.failure, "");
  EXPECT_EQ(m.about, "plug-in, 1 threads, 3 sets, a=1 b=2");
}

TEST(Peer, RefusalsAndFailuresAreReported) {
  Job job = doubling();
  job.task.op = "triple";
  const Measured refuser = compare(job, {{"plug", "peer", TW_PEER}}, quick()).all[0];
  EXPECT_EQ(refuser.failure, "peer 'doubler' does not do triple: it only doubles");
  EXPECT_TRUE(refuser.refused);
  job = doubling();
  job.task.options = {{"fail", "yes"}};
  EXPECT_THAT(compare(job, {{"plug", "peer", TW_PEER}}, quick()).all[0].failure,
              HasSubstr("peer 'doubler' failed with code 5"));
}

TEST(Peer, WhatIsNoPlugInIsAnError) {
  TW_EXPECT_ERROR(EnvError, "cannot load peer 'x'", [] {
    load_peer({"x", "peer", "/nonexistent.so"}, {});
  });
  TW_EXPECT_ERROR(EnvError, "exports no tw_peer", [] {
    load_peer({"x", "peer", "libm.so.6"}, {});
  });
}

}  // namespace
}  // namespace tw::measure
