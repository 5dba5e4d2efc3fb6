#include "tw/measure/impl/clocks.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace tw::measure {
namespace {

/// A slice of 30 ms on one thread, on a machine that does nothing else.
SliceTimes quiet() {
  SliceTimes s;
  s.wall = s.cpu = 29.5e-3;
  s.span = s.counted = 29.9e-3;
  s.judge = 30e-3;
  s.used = 29.95e-3;
  return s;
}

Clocks of(const std::vector<SliceTimes>& slices, int threads = 1) {
  Clocks c(threads);
  for (const SliceTimes& s : slices) c.add(s);
  return c;
}

bool agree(const SliceTimes& s, int threads = 1) { return Clocks(threads).add(s); }

/// Times of a process whose clocks run at `pace` of the true one.
SliceTimes paced(SliceTimes s, double pace) {
  for (double* t : {&s.wall, &s.cpu, &s.span, &s.counted, &s.copying}) *t *= pace;
  return s;
}

TEST(Clocks, AgreeWithinWhatMessagesTake) {
  EXPECT_TRUE(agree(quiet()));
  EXPECT_TRUE(agree(paced(quiet(), 0.98)));
  EXPECT_FALSE(agree(paced(quiet(), 0.96)));
  EXPECT_FALSE(agree(paced(quiet(), 1.02)));
}

TEST(Clocks, AFalseOneIsAnErrorAndGainsNothingBefore) {
  for (const double pace : {0.5, 0.75, 1.1})
    TW_EXPECT_ERROR(DeviceError, "in 2 of 2 slices", [&] {
      of({paced(quiet(), pace), paced(quiet(), pace)}).expect("x");
    });
  for (double pace = 0.05; pace < 1; pace += 0.05) {
    const SliceTimes s = paced(quiet(), pace);
    EXPECT_GE(agree(s) ? s.wall : Clocks(1).judged(s), quiet().used * 0.95) << pace;
  }
}

TEST(Clocks, EachIsCompared) {
  const auto fails = [](double SliceTimes::*clock, const char* why) {
    SliceTimes s = quiet();
    s.*clock /= 2;
    EXPECT_FALSE(agree(s)) << why;
    TW_EXPECT_ERROR(DeviceError, why, [&] { of({s}).expect("x"); });
  };
  fails(&SliceTimes::span, "14.95 ms from first to last call, which took the judge 30 ms");
  fails(&SliceTimes::counted, "14.95 ms of CPU time, of which the system counted 29.95 ms");
  fails(&SliceTimes::cpu, "14.75 ms in calls, which used CPU time of 29.95 ms");
  fails(&SliceTimes::wall, "14.75 ms in calls, which used CPU time of 29.95 ms");
  SliceTimes idle = quiet();  // beside its calls, it waits
  idle.wall = idle.cpu = 15e-3;
  idle.counted = idle.used = 15.2e-3;
  TW_EXPECT_ERROR(DeviceError, "15 ms in calls, but from first to last 29.9 ms",
                  [&] { of({idle}).expect("x"); });
}

TEST(Clocks, ADisturbedSliceIsNoFault) {
  SliceTimes late = quiet();  // the host ran another machine, and does not say so
  late.judge += 22e-3;
  EXPECT_FALSE(agree(late));
  EXPECT_EQ(Clocks(1).judged(late), late.judge);
  of({quiet(), late}).expect("x");
  of({late, quiet(), late, quiet()}).expect("x");
  TW_EXPECT_ERROR(DeviceError, "in 3 of 4 slices", [&] {
    of({late, quiet(), late, late}).expect("x");
  });
}

TEST(Clocks, TimeOfOthersCountsForNobody) {
  for (double SliceTimes::*others :
       {&SliceTimes::late, &SliceTimes::late_worker, &SliceTimes::stolen}) {
    SliceTimes s = quiet();
    s.judge += 40e-3;
    s.*others = 40e-3;
    EXPECT_FALSE(agree(s));
    EXPECT_DOUBLE_EQ(Clocks(1).judged(s), quiet().judge);
    of({s}).expect("x");
  }
}

TEST(Clocks, CopyingCountsWhileTheJudgeIsLate) {
  SliceTimes s = quiet();
  s.used += 5e-3;
  s.copying = 5e-3;
  EXPECT_FALSE(agree(s));
  s.late = 5e-3;
  EXPECT_TRUE(agree(s));
}

TEST(Clocks, CpuTimeOnOtherThreadsIsCountedAtTicks) {
  SliceTimes s = quiet();
  s.cpu = 59e-3;
  s.used = 59.5e-3;
  s.counted = 55e-3;
  EXPECT_TRUE(agree(s, 2));
  s.counted = 50e-3;
  EXPECT_FALSE(agree(s, 2));
}

TEST(Clocks, MoreThreadsThanTheTaskHasAreAnError) {
  SliceTimes s = quiet();
  s.cpu = s.counted = s.used = 58e-3;
  TW_EXPECT_ERROR(DeviceError, "used 58 ms of CPU time in 30 ms, for a task of 1 thread",
                  [&] { of({s}).expect("x"); });
  of({s}, 2).expect("x");
}

TEST(Clocks, BringingIsNotComputing) {
  SliceTimes s = quiet();
  s.brought = 20e-3;
  s.wall = s.cpu = 9.5e-3;
  EXPECT_TRUE(agree(s));
}

}  // namespace
}  // namespace tw::measure
