#include "tw/passes/fold_after_loop.h"

#include <gtest/gtest.h>

#include "tw/ir/print.h"

#include "tests/passes/run_pass.h"

namespace tw {
namespace {

std::string folded(const std::string& text) {
  return print(test::run_pass(fold_after_loop, parse(text)));
}

const std::string kLoopProgram = "program p\ndim N\nin A: f32[N]\ninout C: f32[N]\ngrid (4)\n\n";

TEST(FoldAfterLoop, TheLoopCarriesElements) {
  EXPECT_EQ(folded(kLoopProgram + R"(%0 = full 3 : f32[1]
%5 = for i0 in 0..N step 1 carry (%1 = %0) : f32[1] {
  %2 = load A{i0*8} : f32[8]
  %3 = reduce max %2 axis 0 : f32[1]
  %4 = max %1, %3 : f32[1]
  yield %4
}
store %5 to C{0}
)"),
            kLoopProgram + R"(%0 = full -inf : f32[8]
%4 = for i0 in 0..N step 1 carry (%1 = %0) : f32[8] {
  %2 = load A{i0*8} : f32[8]
  %3 = max %1, %2 : f32[8]
  yield %3
}
%5 = full 3 : f32[1]
%6 = reduce max %4 axis 0 : f32[1]
%7 = max %5, %6 : f32[1]
store %7 to C{0}
)");
}

/// A loop with a body, carrying %1 = %0.
std::string carrying(const std::string& type, const std::string& body) {
  return kLoopProgram + "%0 = full 0 : " + type +
         "\n%9 = for i0 in 0..N step 1 carry (%1 = %0) : " + type + " {\n" + body +
         "}\n%10 = cast %9 : f32[1]\nstore %10 to C{0}\n";
}

void expect_unchanged(const std::string& text) {
  const std::string canonical =
      print(test::run_pass([](Program& p, const PassContext&) { canonicalize(p); }, parse(text)));
  EXPECT_EQ(folded(text), canonical);
}

TEST(FoldAfterLoop, WhatElseReadsTheCarriedValueKeepsIt) {
  expect_unchanged(carrying("f32[1]", R"(  %2 = load A{i0*8} : f32[8]
  %3 = sub %2, %1 : f32[8]
  %4 = reduce sum %3 axis 0 : f32[1]
  %5 = add %1, %4 : f32[1]
  yield %5
)"));
}

TEST(FoldAfterLoop, AnotherOpThanTheFoldsKeepsIt) {
  expect_unchanged(carrying("f32[1]", R"(  %2 = load A{i0*8} : f32[8]
  %3 = reduce max %2 axis 0 : f32[1]
  %4 = add %1, %3 : f32[1]
  yield %4
)"));
}

TEST(FoldAfterLoop, SumsOfNarrowFloatsAreNotRoundedAtEveryStep) {
  expect_unchanged(carrying("bf16[1]", R"(  %2 = load A{i0*8} : f32[8]
  %3 = cast %2 : bf16[8]
  %4 = reduce sum %3 axis 0 : bf16[1]
  %5 = add %1, %4 : bf16[1]
  yield %5
)"));
}

}  // namespace
}  // namespace tw
