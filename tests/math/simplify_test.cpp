#include <algorithm>
#include <gtest/gtest.h>

#include "tw/math/rules.h"

#include "tests/math/symbols.h"

namespace tw {
namespace {

using test::parsed, test::text;

// d0 is a multiple of 64; d1 >= 1; d2 is 5; i0 in [0, 3]; i1 in [0, 15]; i2 in [0, d1).
Facts example_facts() {
  const int64_t infinite = Interval::kMax;
  return {
      {{SymbolKind::dim, 0}, {.multiple_of = 64}},
      {{SymbolKind::dim, 1}, {.range = {1, infinite}}},
      {{SymbolKind::dim, 2}, {.range = {5, 5}}},
      {{SymbolKind::loop, 0}, {.range = {0, 3}}},
      {{SymbolKind::loop, 1}, {.range = {0, 15}}},
      {{SymbolKind::loop, 2}, {.range = {0, infinite}, .below = parsed("d1")}},
  };
}

struct Example {
  const char* rule;  ///< that makes the difference
  const char* from;
  const char* to;
};

const Example kExamples[] = {
    {"known_value", "p0 + d2", "p0 + 5"},
    {"equal_quotient", "floordiv(p0 + d1, p0 + d1)", "1"},
    {"nested_remainder", "mod(mod(p0, 12), 4)", "mod(p0, 4)"},
    {"nested_quotient", "floordiv(floordiv(p0, 4), 8)", "floordiv(p0, 32)"},
    {"quotient_of_sum", "cdiv(cdiv(p0, 4), 16)", "cdiv(p0, 64)"},
    {"negated_quotient", "floordiv(p0, -1)", "-p0"},
    {"multiply_quotient_out", "floordiv(p0, d1)*d1 + mod(p0, d1)", "p0"},
    {"multiply_quotient_out", "p0 - floordiv(p0, 8)*8", "mod(p0, 8)"},
    {"multiply_quotient_out", "floordiv(d0, 64)*128", "d0*2"},
    {"split_quotient", "floordiv(p0*64 + i1, 16)", "p0*4"},
    {"split_quotient", "floordiv(p0*d1 + i2, d1)", "p0"},
    {"split_quotient", "cdiv(d0, 64)", "floordiv(d0, 64)"},
    {"split_quotient", "floordiv(i2, d1)", "0"},
    {"split_remainder", "mod(p0*64 + i1, 16)", "i1"},
    {"split_remainder", "mod(p0*d1 + i2, d1)", "i2"},
    {"split_remainder", "mod(d0 + p0*65, 64)", "mod(p0, 64)"},
    {"reduce_quotient", "floordiv(p0*16 + i1, 64)", "floordiv(p0, 4)"},
    {"reduce_remainder", "mod(p0*16 + i1, 64)", "i1 + mod(p0, 4)*16"},
    {"factor_choice", "min(p0*4 + d0, p1*4 + d0)", "d0 + min(p0, p1)*4"},
    {"factor_choice", "min(d1*4, p1*8 + p0*4)", "min(d1, p0 + p1*2)*4"},
    {"canonical_choice", "min(p1, min(p0, p1 + 1))", "min(p0, p1)"},
    {"canonical_choice", "max(d0 - i0, d0 - 9)", "d0 - i0"},
    {"canonical_sum", "p1 + p0*3 - p1*2 - p0*2", "p0 - p1"},
    {"canonical_sum", "p0*64 + p1*64", "(p0 + p1)*64"},
};

TEST(Simplify, ExamplesOfEachRule) {
  for (const Example& e : kExamples)
    EXPECT_EQ(text(simplify(parsed(e.from), example_facts())), e.to) << e.from;
}

// Without its rule an example comes out otherwise: no rule is there that others make needless.
TEST(Simplify, EveryRuleIsNeeded) {
  for (const SimplifyRule& rule : simplify_rules()) {
    std::vector<SimplifyRule> others;
    for (const SimplifyRule& r : simplify_rules())
      if (r.name != rule.name) others.push_back(r);
    const bool needed = std::any_of(std::begin(kExamples), std::end(kExamples), [&](auto& e) {
      return e.rule == rule.name &&
             text(simplify_with(others, parsed(e.from), example_facts())) != e.to;
    });
    EXPECT_TRUE(needed) << rule.name;
  }
}

// Sums that are equal as polynomials get one form, so that structural equality finds them.
TEST(Simplify, EqualSumsMeet) {
  const char* forms[] = {"p0*64 + i0 + d0 - 1", "(d0 + i0) + (p0*64 - 1)",
                         "i0 - 1 + (d0 + p0*32) + p0*32", "d0*2 - (d0 + 1 - i0 - 64*p0)"};
  const Expr first = simplify(parsed(forms[0]), {});
  for (const char* form : forms) EXPECT_EQ(simplify(parsed(form), {}), first) << form;
}

}  // namespace
}  // namespace tw
