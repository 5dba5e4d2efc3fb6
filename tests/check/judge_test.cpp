#include "tw/check/judge.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iostream>
#include <sched.h>

#include "tests/check/product.h"
#include "tests/support/burners.h"
#include "tests/support/expect_error.h"

namespace tw::check {
namespace {

using testing::HasSubstr;

Judge::Settings settings_here() { return quick_settings(TW_WORKER); }

Ruling judge(const measure::ContestantSpec& callable) {
  return judge_product(callable, settings_here());
}

/// What of all this the timer alone sees.
Ruling time_only(const measure::ContestantSpec& callable) {
  Judge judge(callable, settings_here());
  judge.time(product_case(64, 64, 64));
  return judge.ruling();
}

struct Species {
  std::string name, what, verdict, timed;
  std::string file() const { return TW_ZOO "/" + name + ".so"; }
};

void PrintTo(const Species& s, std::ostream* out) { *out << s.name; }

/// The rows of the table in docs/judge.md: what the zoo must show.
std::vector<Species> zoo() {
  std::ifstream page(TW_TEST_DIR "/../../docs/judge.md");
  std::vector<Species> all;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    for (size_t at = 2, bar; (bar = line.find(" |", at)) != std::string::npos; at = bar + 3)
      cells.push_back(line.substr(at, bar - at));
    if (cells.size() == 4)  // the table of GPUs has three
      all.push_back({cells[0].substr(1, cells[0].size() - 2), cells[1], cells[2], cells[3]});
  }
  return all;
}

class Zoo : public testing::TestWithParam<Species> {
 protected:
  static void TearDownTestSuite() {
    std::cout << "zoo: " << rejected << " cheats rejected, " << accepted << " honest accepted";
    for (const std::string& name : misjudged) std::cout << ", misjudged " << name;
    std::cout << '\n';
  }
  void TearDown() override {
    if (HasFailure()) misjudged.push_back(GetParam().name);
  }
  static inline int rejected = 0, accepted = 0;
  static inline std::vector<std::string> misjudged;
};

TEST_P(Zoo, IsJudgedAsThePageSays) {
  const Species& s = GetParam();
  if (!std::filesystem::exists(s.file())) GTEST_SKIP() << "holds code of another processor";
  const Ruling r = judge({s.name, "peer", s.file()});
  if (s.verdict == "accepted") {
    EXPECT_EQ(r.fault, "");
    EXPECT_GT(r.elements, 1000);
    EXPECT_GT(r.timed, 0);
    accepted += r.fault.empty();
  } else {
    EXPECT_TRUE(says(r.fault, s.verdict)) << r.fault;
    rejected += !r.fault.empty();
  }
}

class TimedZoo : public testing::TestWithParam<Species> {};

TEST_P(TimedZoo, IsRejectedByTheTimerAloneWhereThePageSays) {
  const Species& s = GetParam();
  if (!std::filesystem::exists(s.file())) GTEST_SKIP() << "holds code of another processor";
  const Ruling r = time_only({s.name, "peer", s.file()});
  if (s.timed == "either") return;
  EXPECT_EQ(r.fault.empty() ? "accepted" : "rejected", s.timed) << r.fault;
}

INSTANTIATE_TEST_SUITE_P(All, Zoo, testing::ValuesIn(zoo()),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(All, TimedZoo, testing::ValuesIn(zoo()),
                         [](const auto& info) { return info.param.name; });

TEST(Audit, TellsEveryMutantOfAProduct) {
  const Audit a = audit(product_case(33, 20, 50));
  EXPECT_EQ(a.passed, std::vector<std::string>{});
  EXPECT_EQ(a.mutants, 4 + 2 * 6);
}

TEST(Audit, NamesWhatALooseBoundLetsPass) {
  Case loose = product_case(33, 20, 50);
  loose.reference = [](std::span<const TensorView> in) {
    Reference r = product(33, 20, 50, in);
    for (double& s : r.outputs[0].sum_abs) s *= 0x1p16;
    return r;
  };
  const std::vector<std::string> passed = audit(loose).passed;
  EXPECT_THAT(passed, testing::Contains("A in tf32"));
  EXPECT_THAT(passed, testing::Contains("B in bf16"));
  EXPECT_THAT(passed, testing::Not(testing::Contains("A zeroed")));
}

/// Puts this process, and all that it starts, on one CPU.
class OneCpu {
 public:
  OneCpu() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCpu() { sched_setaffinity(0, sizeof before_, &before_); }
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

 private:
  cpu_set_t before_;
};

// Clocks of both sides run on while others have the CPU, and what turns for ever gets little of it.
TEST(Judge, OtherLoadChangesNoVerdict) {
  const OneCpu crowded;
  const test::Burners others(4);
  const auto callable = [](const std::string& name) {
    return measure::ContestantSpec{name, "peer", TW_ZOO "/" + name + ".so"};
  };
  EXPECT_EQ(time_only(callable("honest_plain")).fault, "");
  if (std::filesystem::exists(callable("patches_clock").source)) {
    EXPECT_THAT(time_only(callable("patches_clock")).fault, HasSubstr("failed"));
  }
  Judge of_spinner(callable("spins_after"), settings_here());
  of_spinner.endure(product_case(40, 56, 48));
  EXPECT_THAT(of_spinner.ruling().fault, HasSubstr("of a CPU busy when no call is under way"));
}

/// The rounding of operands hides below the bound of so long a sum, not below the mean of errors.
TEST(Judge, MeanSquaresTellTf32InLongSums) {
  Case sums = product_case(3, 5, 8192);
  for (Argument& a : sums.arguments) a.domain = Domain::small;  // uniform values only
  const auto ruling = [&](const char* name) {
    Judge judge({name, "peer", std::string(TW_ZOO "/") + name + ".so"}, settings_here());
    judge.check(sums);
    return judge.ruling();
  };
  EXPECT_EQ(ruling("honest_plain").fault, "");
  const Ruling r = ruling("in_tf32");
  EXPECT_THAT(r.fault, HasSubstr("have a root mean square of"));
  EXPECT_LE(r.worst, 1);
}

TEST(Judge, ATimeThatNoMachineReachesIsAFault) {
  Judge judge({"plain", "peer", TW_ZOO "/honest_plain.so"}, settings_here());
  judge.time(product_case(8, 8, 8), 1e6);
  EXPECT_THAT(judge.ruling().fault, HasSubstr("us, the least possible is 1e+06"));
}

TEST(Judge, ARefusalIsNoFault) {
  Case other = product_case(8, 8, 8);
  other.task.op = "softmax";
  Judge judge({"plain", "peer", TW_ZOO "/honest_plain.so"}, settings_here());
  EXPECT_FALSE(judge.check(other));
  EXPECT_FALSE(judge.endure(other));
  EXPECT_FALSE(judge.time(other));
  EXPECT_EQ(judge.ruling().fault, "");
  EXPECT_EQ(judge.ruling().refused, 1);
  EXPECT_THAT(judge.ruling().refusals, testing::SizeIs(3));
  EXPECT_THAT(judge.ruling().refusals[0], HasSubstr("does not do softmax: "));
}

TEST(Judge, WhatDoesNotLoadIsNoCallable) {
  Judge judge({"none", "peer", "/nonexistent.so"}, settings_here());
  TW_EXPECT_ERROR(EnvError, "cannot load peer 'none'", [&] { judge.check(product_case(8, 8, 8)); });
}

TEST(ZooPage, DescribesEverySpeciesAsItsSourceDoes) {
  std::vector<std::string> sources, rows;
  for (const auto& file : std::filesystem::directory_iterator(TW_TEST_DIR "/zoo"))
    if (file.path().extension() == ".cpp") sources.push_back(file.path().stem());
  int cheats = 0;
  for (const Species& s : zoo()) {
    rows.push_back(s.name);
    cheats += s.verdict != "accepted";
    std::ifstream source(TW_TEST_DIR "/zoo/" + s.name + ".cpp");
    const std::string text(std::istreambuf_iterator<char>(source), {});
    EXPECT_THAT(text, HasSubstr("/// " + s.what));
  }
  EXPECT_THAT(rows, testing::UnorderedElementsAreArray(sources));
  EXPECT_GE(cheats, 25);
}

}  // namespace
}  // namespace tw::check
