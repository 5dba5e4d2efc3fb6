#include <gmock/gmock.h>

#include "tests/interp/run_text.h"

namespace tw::test {

using testing::ElementsAre;

/// A program on X f32[5], ids i32[4] and Y[6] of type t.
static std::vector<double> places(const std::string& body, const std::vector<double>& ids,
                                  DType t = f32, const InterpretOptions& options = {},
                                  Interpretation* report = nullptr) {
  const std::string text =
      "program p\nin X: f32[5]\nin ids: i32[4]\ninout Y: " + std::string(name(t)) +
      "[6]\ngrid (1)\n\n%0 = load ids{0} : i32[4]\n"
      "%1 = load X{0} : f32[4]\n" +
      body;
  return values(run_text(text, {tensor(f32, {5}, {10, 20, 30, 40, 50}), tensor(i32, {4}, ids)},
                         {{t, {6}}}, options, report)[0]);
}

TEST(Places, GatherPadsOutsideAndWhereMasked) {
  EXPECT_THAT(places("%2 = gather X{%0} pad 7 : f32[4]\nstore %2 to Y{0}\n", {4, -1, 5, 0}),
              ElementsAre(50, 7, 7, 10, 0, 0));
  EXPECT_THAT(places("%2 = full 20 : f32[1]\n%3 = lt %1, %2 : b1[4]\n"
                     "%4 = gather X{%0} mask %3 pad 7 : f32[4]\nstore %4 to Y{0}\n",
                     {4, 1, 1, 1}),
              ElementsAre(50, 7, 7, 7, 0, 0));
}

TEST(Places, TheLastOfAScatterStays) {
  EXPECT_THAT(places("scatter %1 to Y{%0}\n", {2, 2, -1, 6}), ElementsAre(0, 0, 20, 0, 0, 0));
  EXPECT_THAT(places("scatter %1 to Y{%0}\n", {0, 5, 0, 3}), ElementsAre(30, 0, 0, 40, 0, 20));
}

TEST(Places, AtomicsUpdateOneAfterTheOther) {
  EXPECT_THAT(places("atomic add relaxed device %1 to Y{%0}\n", {1, 1, 1, -1}),
              ElementsAre(0, 60, 0, 0, 0, 0));
  EXPECT_THAT(places("%2 = atomic add acq_rel system %0 to Y{%0} : i32[4]\n"
                     "store %2 to Y{2}\n",
                     {1, 1, 1, 9}, i32),
              ElementsAre(0, 3, 0, 1, 2, 0));
  for (const auto& [op, want] : {std::pair("max", 5.0),
                                 {"min", 2.0},
                                 {"or", 7.0},
                                 {"and", 0.0},
                                 {"xor", 4.0},
                                 {"exch", 2.0}}) {
    const std::string text = "%2 = full 5 : i32[4]\n%3 = full 1 : i32[4]\nscatter %2 to Y{%3}\n";
    const std::string atomic = std::string("atomic ") + op + " release block %0 to Y{%3}\n";
    EXPECT_EQ(places(text + atomic, {2, 3, 2, 2}, i32)[1], want) << op;
  }
}

TEST(Places, ACompareAndExchangeTakesWhatItExpects) {
  const std::string cas =
      "%2 = full 0 : i32[4]\n%3 = full 7 : i32[4]\n"
      "%4 = atomic cas relaxed device %3 if %2 to Y{%0} : i32[4]\n";
  EXPECT_THAT(places(cas + "store %4 to Y{2}\n", {1, 1, 0, 9}, i32), ElementsAre(7, 7, 0, 7, 0, 0));
  Interpretation report;
  EXPECT_THAT(places(cas, {1, 1, 0, 9}, i32, {.mode = InterpretMode::bounded}, &report),
              ElementsAre(7, 7, 0, 0, 0, 0));
  EXPECT_EQ(report.undecided(), 0);  // of one instance
}

TEST(Places, WhichOfSeveralInstancesExchangesIsOpen) {
  for (const char* op : {"cas relaxed device %1 if %2", "exch relaxed device %1"}) {
    Interpretation report;
    run_text(std::string("program race\ninout Y: i32[2]\ngrid (2)\n\n%0 = full 0 : i64[1]\n"
                         "%1 = full 5 : i32[1]\n%2 = full 0 : i32[1]\natomic ") +
                 op + " to Y{%0}\n",
             {}, {{i32, {2}}}, {.mode = InterpretMode::bounded}, &report);
    EXPECT_EQ(report.undecided(), 1) << op;
  }
}

TEST(Places, ScratchIsZeroWhenAnInstanceBegins) {
  const std::string own = R"(program own
inout Y: f32[3]
scratch S: f32[2]
grid (3)

%0 = load S[0]{} : f32[]
%1 = full 0.1 : f32[]
%2 = atomic add relaxed device %1 to S[0]{} : f32[]
%3 = atomic add relaxed device %1 to S[0]{} : f32[]
%4 = add %0, %3 : f32[]
store %4 to Y[pid0]{}
)";
  for (const InterpretMode mode : {InterpretMode::exact, InterpretMode::bounded}) {
    Interpretation report;
    const Tensor y = run_text(own, {}, {{f32, {3}}}, {mode, {}}, &report)[0];
    EXPECT_THAT(values(y), testing::Each(static_cast<double>(0.1f)));
    EXPECT_EQ(report.undecided(), 0);  // no other instance updates it
  }
}

TEST(Places, FloatSumsAreBoundedWhateverTheirOrder) {
  Interpretation report;
  const std::string body = "%2 = full 0.1 : f32[4]\natomic add relaxed device %2 to Y{%0}\n";
  places(body, {1, 1, 1, 2}, f32, {InterpretMode::bounded, {}}, &report);
  const std::vector<Scalar>& y = report.outputs[0];
  EXPECT_EQ(y[2].bound, 0);  // 0 + 0.1 in any order
  EXPECT_GT(y[1].bound, 0);
  EXPECT_LT(y[1].bound, 0x1p-18);
  const double exact = 3 * static_cast<double>(0.1f);
  EXPECT_LE(std::abs(y[1].f - exact), y[1].bound);
}

TEST(Places, WhatHangsOnARoundingIsUndecided) {
  // exp(log(x)) may round to either side of 1.5: the coordinate is not known, nor what is written.
  const std::string at =
      "%2 = full 1.5 : f32[4]\n%3 = log %2 : f32[4]\n%4 = exp %3 : f32[4]\n"
      "%5 = full 0.5 : f32[4]\n%6 = add %4, %5 : f32[4]\n"
      "%7 = cast %6 : i32[4]\n";
  Interpretation report;
  places(at + "%8 = gather X{%7} : f32[4]\nstore %8 to Y{0}\n", {0, 0, 0, 0}, f32,
         {InterpretMode::bounded, {}}, &report);
  EXPECT_EQ(report.undecided(), 4);
  places(at + "scatter %1 to Y{%7}\n", {0, 0, 0, 0}, f32, {InterpretMode::bounded, {}}, &report);
  EXPECT_EQ(report.undecided(), 6);
  places(at + "%8 = le %6, %2 : b1[4]\nscatter %1 to Y{%0}\n", {0, 1, 0, 0}, f32,
         {InterpretMode::bounded, {}}, &report);
  EXPECT_EQ(report.undecided(), 0);
  places(at + "%8 = full 2 : f32[4]\n%9 = lt %6, %8 : b1[4]\nscatter %1 to Y{%0} mask %9\n",
         {0, 1, 0, 0}, f32, {InterpretMode::bounded, {}}, &report);
  EXPECT_EQ(report.undecided(), 2);
}

}  // namespace tw::test
