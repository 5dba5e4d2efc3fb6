#include "tw/passes/merge_equal.h"

#include <gtest/gtest.h>

#include "tw/ir/print.h"

#include "tests/passes/run_pass.h"

namespace tw {
namespace {

std::string merged(const std::string& text) {
  return print(test::run_pass(merge_equal, parse(text)));
}

const std::string kOneInput = "program p\ndim N\nin A: f32[N]\ninout C: f32[N]\ngrid (4)\n\n";

TEST(MergeEqual, ComputesEqualOpsOnceInARegionAndThoseInside) {
  EXPECT_EQ(merged(kOneInput + R"(%0 = load A{0} : f32[8]
%1 = exp %0 : f32[8]
%5 = for i0 in 0..N step 1 carry (%2 = %1) : f32[8] {
  %3 = exp %0 : f32[8]
  %4 = add %3, %2 : f32[8]
  yield %4
}
%6 = load A{0} : f32[8]
%7 = exp %6 : f32[8]
%8 = mul %7, %5 : f32[8]
store %8 to C{0}
)"),
            kOneInput + R"(%0 = load A{0} : f32[8]
%1 = exp %0 : f32[8]
%4 = for i0 in 0..N step 1 carry (%2 = %1) : f32[8] {
  %3 = add %1, %2 : f32[8]
  yield %3
}
%5 = mul %1, %4 : f32[8]
store %5 to C{0}
)");
}

TEST(MergeEqual, WhatDiffersStays) {
  const std::string text = kOneInput + R"(%0 = load C{0} : f32[8]
store %0 to C{8}
%1 = load C{0} : f32[8]
%2 = full 0 : f32[8]
%3 = add %1, %2 : f32[8]
%4 = full -0 : f32[8]
%5 = add %3, %4 : f32[8]
%6 = full 0 : f32[1]
%7 = add %5, %6 : f32[8]
%8 = load A{0} : f32[8]
%9 = add %7, %8 : f32[8]
%10 = load A{0} pad 1 : f32[8]
%11 = add %9, %10 : f32[8]
store %11 to C{0}
)";
  EXPECT_EQ(merged(text), text);
}

TEST(MergeEqual, SidesOfABranchDoNotSeeEachOther) {
  const std::string text = kOneInput + R"(%0 = load A{0} : f32[8]
%3 = if pid0 < 1 : f32[8] {
  %1 = exp %0 : f32[8]
  yield %1
} else {
  %2 = exp %0 : f32[8]
  yield %2
}
store %3 to C{0}
)";
  EXPECT_EQ(merged(text), text);
}

TEST(MergeEqual, CombinersAreClosed) {
  EXPECT_EQ(merged(kOneInput + R"(%0 = full 2 : f32[]
%1 = reshape %0 : f32[1]
store %1 to C{0}
%2 = load A{0} : f32[8]
%9 = reduce custom %2 axis 0 : f32[1] (%3, %4) {
  %5 = full 2 : f32[]
  %6 = full 2 : f32[]
  %7 = mul %5, %3 : f32[]
  %8 = mul %6, %4 : f32[]
  %10 = add %7, %8 : f32[]
  yield %10
}
store %9 to C{1}
)"),
            kOneInput + R"(%0 = full 2 : f32[]
%1 = reshape %0 : f32[1]
store %1 to C{0}
%2 = load A{0} : f32[8]
%9 = reduce custom %2 axis 0 : f32[1] (%3, %4) {
  %5 = full 2 : f32[]
  %6 = mul %5, %3 : f32[]
  %7 = mul %5, %4 : f32[]
  %8 = add %6, %7 : f32[]
  yield %8
}
store %9 to C{1}
)");
}

}  // namespace
}  // namespace tw
