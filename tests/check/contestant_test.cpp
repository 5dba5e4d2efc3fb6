#include "tw/check/contestant.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tw/ir/print.h"
#include "tw/measure/compare.h"

namespace tw::check {
namespace {

const char* const kDouble = R"(program doubled
dim N
in X: f32[N]
out Y: f32[N]
grid (cdiv(N, 64))

%0 = load X{pid0*64} : f32[64]
%1 = add %0, %0 : f32[64]
store %1 to Y{pid0*64}
)";

measure::Job job() {
  measure::Job j;
  j.task = {"doubled", {}, 1};
  j.inputs = {{"X", f32, {1000}, {}}};
  j.outputs = {{"Y", f32, {1000}, {}}};
  j.fill = [](int, const TensorView& to, uint64_t seed) {
    for (int64_t i = 0; i < to.count(); ++i) set(to, i, static_cast<double>(seed % 997 + i));
  };
  j.verify = [](const measure::TensorSet& s, uint64_t) {
    for (int64_t i = 0; i < s.outputs[0].count(); ++i)
      if (get(s.outputs[0], i) != 2 * get(s.inputs[0], i)) return HUGE_VAL;
    return 0.0;
  };
  return j;
}

measure::Measured run(const measure::ContestantSpec& spec) {
  measure::Settings s;
  s.worker = TW_WORKER;
  s.blocks = 2;
  s.slice_s = 0.002;
  s.repeats = 0;
  return measure::compare(job(), {spec}, s).all[0];
}

TEST(KernelContestant, CompilesAndRunsAProgramInItsProcess) {
  const measure::Measured m = run(kernel_contestant("ours", parse(kDouble)));
  EXPECT_EQ(m.failure, "");
  EXPECT_THAT(m.about, testing::HasSubstr("cpu1"));
  EXPECT_GT(m.verified, 0);
  EXPECT_GT(m.time_us.median, 0);
}

TEST(KernelContestant, WrongProgramsAreCaughtAndBrokenOnesReported) {
  Program wrong = parse(kDouble);
  wrong.body.ops[1].code = Opcode::mul;
  EXPECT_THAT(run(kernel_contestant("wrong", wrong)).failure,
              testing::HasSubstr("contestant 'wrong' is wrong"));
  measure::ContestantSpec broken = kernel_contestant("broken", parse(kDouble));
  broken.source += "nonsense\n";
  EXPECT_THAT(run(broken).failure, testing::HasSubstr("broken:"));
}

}  // namespace
}  // namespace tw::check
