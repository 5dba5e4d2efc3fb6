#include "tw/passes/canonicalize.h"

#include <gtest/gtest.h>

#include "tw/ir/print.h"
#include "tw/ir/verify.h"

namespace tw {
namespace {

std::string canonical(const std::string& text) {
  Program p = parse(text);
  canonicalize(p);
  verify(p, "canonicalize");
  const std::string once = print(p);
  canonicalize(p);
  EXPECT_EQ(print(p), once) << "not idempotent";
  for (const Op& op : p.body.ops)
    for (ValueId v : op.out) EXPECT_LT(v, p.values.size());
  return once;
}

const std::string kHead =
    "program p\ndim N\nin A: f32[N]\nin B: f32[N]\ninout C: f32[N]\ngrid (4)\n\n";

TEST(Canonicalize, PullsPureOpsInOperandOrderAndDropsDeadOnes) {
  EXPECT_EQ(canonical(kHead + R"(%7 = load B{0} : f32[8]
%1 = load A{0} : f32[8]
%2 = exp %1 : f32[8]
%3 = add %1, %7 : f32[8]
%9 = log %2 : f32[8]
store %3 to C{0}
)"),
            kHead + R"(%0 = load A{0} : f32[8]
%1 = load B{0} : f32[8]
%2 = add %0, %1 : f32[8]
store %2 to C{0}
)");
}

TEST(Canonicalize, EffectsKeepTheirOrder) {
  const std::string text = kHead + R"(%0 = load C{8} : f32[8]
store %0 to C{0}
%1 = load C{0} : f32[8]
%2 = load C{16} : f32[8]
store %2 to C{8}
store %1 to C{16}
)";
  EXPECT_EQ(canonical(text), text);
}

TEST(Canonicalize, DropsLoadsOfMemoryThatNothingNeeds) {
  EXPECT_EQ(canonical(kHead + "%0 = load C{8} : f32[8]\n"), kHead);
}

TEST(Canonicalize, DropsCarriedValuesLoopsAndBranchesThatNothingNeeds) {
  EXPECT_EQ(canonical(kHead + R"(%0 = load A{0} : f32[8]
%1 = full 0 : f32[8]
%9, %10 = for i5 in 0..N step 1 carry (%2 = %0, %3 = %1) : f32[8], f32[8] {
  %4 = add %2, %0 : f32[8]
  %5 = mul %3, %4 : f32[8]
  %7, %8 = if i5 < 2 : f32[8], f32[8] {
    yield %4, %5
  } else {
    %6 = neg %4 : f32[8]
    yield %6, %3
  }
  yield %7, %8
}
%13 = for i1 in 0..N step 1 carry (%11 = %1) : f32[8] {
  %12 = add %11, %11 : f32[8]
  yield %12
}
if pid0 < 1 {
  %14 = neg %13 : f32[8]
} else {
}
store %9 to C{0}
)"),
            kHead + R"(%0 = load A{0} : f32[8]
%5 = for i0 in 0..N step 1 carry (%1 = %0) : f32[8] {
  %2 = add %1, %0 : f32[8]
  %4 = if i0 < 2 : f32[8] {
    yield %2
  } else {
    %3 = neg %2 : f32[8]
    yield %3
  }
  yield %4
}
store %5 to C{0}
)");
}

TEST(Canonicalize, KeepsACarriedValueThatOnlyTheNextIterationNeeds) {
  const std::string text = kHead + R"(%0 = load A{0} : f32[8]
%1 = for i0 in 0..N step 1 carry (%1 = %0) : f32[8] {
  %2 = exp %1 : f32[8]
  store %1 to C{i0}
  yield %2
}
)";
  const std::string fixed = kHead + R"(%0 = load A{0} : f32[8]
%3 = for i0 in 0..N step 1 carry (%1 = %0) : f32[8] {
  store %1 to C{i0}
  %2 = exp %1 : f32[8]
  yield %2
}
)";
  EXPECT_EQ(canonical(std::string(text).replace(text.find("%1 = for"), 2, "%9")), fixed);
}

// Carried values that nobody needs go, the condition stays; a loop without results or stores goes.
TEST(Canonicalize, KeepsTheConditionOfAWhile) {
  const std::string loop = R"(%0 = load A{0} : f32[8]
%1 = full 1 : b1[]
%2 = full 2 : f32[8]
%10, %11, %12 = while carry (%3 = %1, %4 = %0, %5 = %0) : b1[], f32[8], f32[8] {
  %6 = lt %5, %2 : b1[8]
  %7 = reduce or %6 axis 0 : b1[1]
  %8 = reshape %7 : b1[]
  %9 = add %5, %2 : f32[8]
  STORE
  yield %8, %4, %9
}
)";
  const auto with = [&](const std::string& store, const std::string& rest) {
    std::string s = kHead + loop + rest;
    return s.replace(s.find("STORE"), 5, store);
  };
  EXPECT_EQ(canonical(with("", "store %0 to C{0}\n")),
            kHead + "%0 = load A{0} : f32[8]\nstore %0 to C{0}\n");
  EXPECT_EQ(canonical(with("store %2 to C{0}", "")), kHead + R"(%0 = full 1 : b1[]
%1 = load A{0} : f32[8]
%2 = full 2 : f32[8]
%9, %10 = while carry (%3 = %0, %4 = %1) : b1[], f32[8] {
  store %2 to C{0}
  %5 = lt %4, %2 : b1[8]
  %6 = reduce or %5 axis 0 : b1[1]
  %7 = reshape %6 : b1[]
  %8 = add %4, %2 : f32[8]
  yield %7, %8
}
)");
  // What the host hears keeps the loop, so its condition too.
  for (const char* host : {"print %0 \"x\"", "assert %1"}) {
    const std::string kept = canonical(with(host, "store %0 to C{0}\n"));
    EXPECT_NE(kept.find(" : b1[], f32[8] {"), std::string::npos) << kept;
  }
}

TEST(Canonicalize, LongChainsNeedNoStack) {
  Program p = parse(kHead + "%0 = load A{0} : f32[8]\n%1 = neg %0 : f32[8]\nstore %1 to C{0}\n");
  const Op link = p.body.ops[1];
  Op store = p.body.ops.back();
  p.body.ops.pop_back();
  for (int k = 0; k < 200'000; ++k) {
    Op next = link;
    next.in = {p.body.ops.back().out[0]};
    next.out = {p.new_value(p.type(0), link.at)};
    p.body.ops.push_back(std::move(next));
  }
  store.in = {p.body.ops.back().out[0]};
  p.body.ops.push_back(std::move(store));
  canonicalize(p);
  EXPECT_EQ(p.body.ops.size(), 200'003u);
  verify(p, "canonicalize");
}

TEST(Canonicalize, NumbersLoopsInTheOrderOfTheText) {
  EXPECT_EQ(canonical(kHead + R"(for i7 in 0..N step 1 {
  for i3 in i7..N step 1 {
    %0 = index i3 + i7 : i64[1]
    %1 = cast %0 : f32[1]
    store %1 to C{i3}
  }
}
)"),
            kHead + R"(for i0 in 0..N step 1 {
  for i1 in i0..N step 1 {
    %0 = index i1 + i0 : i64[1]
    %1 = cast %0 : f32[1]
    store %1 to C{i1}
  }
}
)");
}

TEST(Canonicalize, DropsDeadOpsOfCombiners) {
  EXPECT_EQ(canonical(kHead + R"(%0 = load A{0} : f32[8]
%5 = reduce custom %0 axis 0 : f32[1] (%1, %2) {
  %3 = exp %1 : f32[]
  %4 = add %2, %1 : f32[]
  yield %4
}
store %5 to C{0}
)"),
            kHead + R"(%0 = load A{0} : f32[8]
%4 = reduce custom %0 axis 0 : f32[1] (%1, %2) {
  %3 = add %2, %1 : f32[]
  yield %3
}
store %4 to C{0}
)");
}

}  // namespace
}  // namespace tw
