#include "tw/ir/program.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "tw/base/error.h"
#include "tw/ir/print.h"

#include "tests/ir/corpus.h"
#include "tests/support/expect_error.h"

namespace tw {

TEST(Number, NanEqualsNanAndMinusZeroIsNotZero) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE((Number{false, 0, nan} == Number{false, 0, -nan}));
  EXPECT_FALSE((Number{false, 0, 0.0} == Number{false, 0, -0.0}));
  EXPECT_FALSE((Number{true, 1, 0} == Number{false, 0, 1}));
  EXPECT_FALSE((Number{true, 1, 0} == Number{true, 2, 0}));
  EXPECT_EQ((Number{true, -3, 0}).as_double(), -3);
  EXPECT_EQ((Number{false, 0, 2.5}).as_double(), 2.5);
}

TEST(Ops, TheTableGivesTextNames) {
  EXPECT_STREQ(info(Opcode::and_).name, "and");
  EXPECT_STREQ(info(Opcode::if_).name, "if");
  EXPECT_STREQ(info(Opcode::min_num).name, "min_num");
  EXPECT_EQ(info(Opcode::reduce).operands, kMany);
  EXPECT_EQ(info(Opcode::store).effect, Effect::write);
}

TEST(Program, LoadsOfInputsArePure) {
  const Program p = parse(test::read_text(TW_TEST_DIR "/corpus/every_op.tw"));
  EXPECT_EQ(effect(p, p.body.ops[0]), Effect::pure);  // of X, in
  EXPECT_EQ(effect(p, p.body.ops[4]), Effect::read);  // of Y, inout
}

TEST(Program, WalkVisitsAnOpBeforeItsRegions) {
  const Program p = parse(test::read_text(TW_TEST_DIR "/corpus/gemm.tw"));
  std::string order;
  walk(p, [&](const Op& op) { order += std::string(info(op.code).name) + " "; });
  EXPECT_EQ(order, "full for load load dot load reshape add cast store ");
}

TEST(Program, FactsFollowDimsGridAndLoops) {
  const Program p = parse(
      "program f\ndim K multiple_of 64\ngrid (7, cdiv(K, 64))\n\n"
      "for i3 in pid0*4..20 step 6 {\n  for i1 in 0..K step 1 {\n  }\n}\n");
  const Facts facts = facts_of(p);
  EXPECT_EQ(facts.at({SymbolKind::dim, 0}).multiple_of, 64);
  EXPECT_EQ(facts.at({SymbolKind::pid, 0}).range, (Interval{0, 6}));
  EXPECT_EQ(facts.at({SymbolKind::pid, 1}).range.lo, 0);
  EXPECT_EQ(facts.at({SymbolKind::loop, 3}).range, (Interval{0, 19}));
  EXPECT_EQ(facts.at({SymbolKind::loop, 3}).multiple_of, 2);
  EXPECT_EQ(facts.at({SymbolKind::loop, 1}).range, (Interval{0, Interval::kMax}));
  const Expr k = Expr::symbol(SymbolKind::dim, 0), i = Expr::symbol(SymbolKind::loop, 1);
  EXPECT_TRUE(prove_le(i + 1, k, facts));
  EXPECT_TRUE(prove_le(Expr::symbol(SymbolKind::pid, 1) * 64 + 64, k, facts));
}

/// A program of one instance axis that loads one element of A.
Program loads(const std::string& coordinate, const std::string& grid = "cdiv(N, 64)") {
  return parse("program f\ndim N\ndim Z\nin A: f32[N]\nout C: f32[Z]\ngrid (" + grid +
                   ")\n\n%0 = load A{" + coordinate + "} : f32[1]\nstore %0 to C{0}\n",
               "f.tw");
}

TEST(IndexRange, DimsMayBeAsLargeAsTheirProductsAllow) {
  EXPECT_EQ(dim_limit(loads("pid0*64")), kMaxDim);
  EXPECT_EQ(dim_limit(loads("pid0*64", "cdiv(N, 16)")), kMaxDim);
  EXPECT_EQ(dim_limit(loads("pid0*Z")), int64_t{1} << 27);  // 2^21 instances of 2^27
  EXPECT_EQ(dim_limit(loads("N*Z - N*Z*1")), int64_t{1} << 24);
  EXPECT_EQ(dim_limit(loads("mod(N*N*Z, 7)")), int64_t{1} << 16) << "parts count";
}

TEST(IndexRange, LargerDimsAreFineWhenTheirProductIs) {
  const Program p = loads("pid0*Z");
  const auto exactly = [](int64_t n, int64_t z) { return std::vector<int64_t>{n, z}; };
  check_indices(p, exactly(int64_t{1} << 40, 1));
  check_indices(p, exactly(1, int64_t{1} << 48));
  TW_EXPECT_ERROR(UserError,
                  "f.tw:8: error: f: a coordinate of 'A' ('pid0*Z') may be as large as "
                  "4503599560261632; wanted within +-2^48",
                  [&] { check_indices(p, exactly(int64_t{1} << 32, int64_t{1} << 26)); });
}

TEST(IndexRange, WhatNoDimMakesSmallerIsRefused) {
  TW_EXPECT_ERROR(UserError, "f.tw:8: error: f: a coordinate of 'A' ('9223372036854775807')",
                  [] { dim_limit(loads("9223372036854775807")); });
  TW_EXPECT_ERROR(UserError, "an extent of the grid ('562949953421312')",
                  [] { dim_limit(loads("0", "562949953421312")); });
  TW_EXPECT_ERROR(UserError, "a loop bound ('9223372036854775800')", [] {
    dim_limit(
        parse("program f\nout C: f32[4]\ngrid (1)\n\nfor i0 in 9223372036854775800.."
              "9223372036854775807 step 1 {\n  %0 = full 0 : f32[4]\n  store %0 to C{0}\n}\n"));
  });
}

TEST(Program, AnEmptyGridStillHasAnOrderedRange) {
  const Facts facts = facts_of(parse("program f\ngrid (0)\n\nfor i0 in 9..3 step 1 {\n}\n"));
  EXPECT_EQ(facts.at({SymbolKind::pid, 0}).range, (Interval{0, 0}));
  EXPECT_EQ(facts.at({SymbolKind::loop, 0}).range, (Interval{9, 9}));
}

TEST(Program, SymbolsHaveNames) {
  const Program p = parse("program f\ndim rows\ngrid (rows)\n");
  EXPECT_EQ(symbol_name(p, {SymbolKind::dim, 0}), "rows");
  EXPECT_EQ(symbol_name(p, {SymbolKind::dim, 4}), "dim4?");
  EXPECT_EQ(symbol_name(p, {SymbolKind::pid, 2}), "pid2");
  EXPECT_EQ(symbol_name(p, {SymbolKind::loop, 11}), "i11");
}

}  // namespace tw
