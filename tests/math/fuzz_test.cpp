#include <gtest/gtest.h>

#include "tw/math/facts.h"
#include "tw/math/rules.h"

#include "tests/math/random_expr.h"
#include "tests/math/symbols.h"

namespace tw {
namespace {

using test::Assignment, test::RandomExprs, test::text, test::value_of;

#ifdef __SANITIZE_ADDRESS__
constexpr int kWorlds = 400;  // there a step costs twenty times as much
constexpr int kFirings = 1;   // of the rarest rule in so few worlds
#else
constexpr int kWorlds = 2000;
constexpr int kFirings = 10;
#endif
constexpr int kExprsPerWorld = 5;

std::string describe(const Facts& facts) {
  std::string all;
  for (const auto& [s, f] : facts) {
    all += "\n  " + test::symbol_text(s) + " in [" + std::to_string(f.range.lo) + ", " +
           std::to_string(f.range.hi) + "] multiple of " + std::to_string(f.multiple_of);
    if (f.from) all += " from " + text(*f.from);
    if (f.below) all += " below " + text(*f.below);
  }
  return all;
}

// Runs check(e, world) for many random expressions in many random worlds.
template <class F>
void for_random_exprs(unsigned seed, int depth, F check, bool huge = false) {
  RandomExprs world(seed);
  if (huge) world.use_huge_constants();
  for (int w = 0; w < kWorlds; ++w) {
    world.new_world();
    for (int i = 0; i < kExprsPerWorld; ++i) {
      const Expr e = world.expr(depth);
      check(e, world);
      if (testing::Test::HasFatalFailure()) {
        ADD_FAILURE() << "for " << text(e) << " with" << describe(world.facts());
        return;
      }
    }
  }
}

// got has the value of e wherever e has one.
void expect_equal(const Expr& e, const Expr& got, const RandomExprs& world) {
  for (const Assignment& a : world.assignments()) {
    auto want = value_of(e, a);
    ASSERT_EQ(want ? value_of(got, a) : want, want) << text(got);
  }
}

TEST(MathFuzz, EvaluateIsTheDefinition) {
  for_random_exprs(1, 4, [](const Expr& e, const RandomExprs& world) {
    for (const Assignment& a : world.assignments()) {
      auto want = value_of(e, a);
      if (!want) continue;
      ASSERT_EQ(evaluate(e, [&](Symbol s) { return a.at(s); }), *want);
    }
  });
}

TEST(MathFuzz, TextRoundTrips) {
  for_random_exprs(2, 4,
                   [](const Expr& e, const RandomExprs&) { ASSERT_EQ(test::parsed(text(e)), e); });
}

TEST(MathFuzz, BuildingANodeAgainGivesIt) {
  for_random_exprs(3, 3, [](const Expr& e, const RandomExprs&) {
    const Expr same = substitute(e + Expr::symbol(SymbolKind::dim, 9), [](Symbol s) {
      return std::optional(Expr::symbol(s.kind, s.id));
    });
    ASSERT_EQ(same, e + Expr::symbol(SymbolKind::dim, 9));
    if (e.size() == 1) return;
    ASSERT_EQ(Expr::binary(e.kind(), e.lhs(), e.rhs()), e);
  });
}

TEST(MathFuzz, BoundsHoldEveryValue) {
  int finite = 0;
  for_random_exprs(4, 3, [&](const Expr& e, const RandomExprs& world) {
    const Interval r = bounds(e, world.facts());
    finite += r.lo != Interval::kMin && r.hi != Interval::kMax;
    for (const Assignment& a : world.assignments()) {
      auto v = value_of(e, a);
      ASSERT_TRUE(!v || (r.lo <= *v && *v <= r.hi)) << *v << " in " << r.lo << ".." << r.hi;
    }
  });
  EXPECT_GT(finite, kWorlds * kExprsPerWorld / 5);
}

TEST(MathFuzz, DivisorDividesEveryValue) {
  int found = 0;
  for_random_exprs(5, 3, [&](const Expr& e, const RandomExprs& world) {
    const int64_t d = divisor(e, world.facts());
    ASSERT_GE(d, 0);
    found += d > 1;
    for (const Assignment& a : world.assignments()) {
      auto v = value_of(e, a);
      ASSERT_TRUE(!v || (d == 0 ? *v == 0 : *v % d == 0)) << d << " divides " << *v;
    }
  });
  EXPECT_GT(found, kWorlds * kExprsPerWorld / 5);
}

// What is proved holds, and what holds close to a bound is often proved.
TEST(MathFuzz, ProofsHold) {
  int proved = 0, disproved = 0;
  for_random_exprs(6, 2, [&](const Expr& a, RandomExprs& world) {
    const Expr b = world.pick(0, 1) ? world.expr(2) : a + world.expr(1);
    const bool yes = prove_le(a, b, world.facts());
    proved += yes;
    for (const Assignment& at : world.assignments()) {
      auto va = value_of(a, at), vb = value_of(b, at);
      disproved += va && vb && *va > *vb;
      ASSERT_TRUE(!yes || !va || !vb || *va <= *vb) << text(b);
    }
  });
  EXPECT_GT(proved, kWorlds * kExprsPerWorld / 10);
  EXPECT_GT(disproved, kWorlds * kExprsPerWorld / 10);
}

// At the limits of int64 analysis stays sound (and the sanitizers see no overflow); a simplified
// expression may overflow elsewhere than the one given, so its values are not compared.
TEST(MathFuzz, AnalysisIsSoundAtTheLimitsOfInt64) {
  auto check = [&](const Expr& e, RandomExprs& world) {
    const Interval r = bounds(e, world.facts());
    const int64_t d = divisor(e, world.facts());
    const Expr other = world.expr(2), simple = simplify(e, world.facts());
    const bool below = prove_le(e, other, world.facts());
    ASSERT_LE(simple.size(), e.size());
    ASSERT_EQ(test::parsed(text(e)), e);
    for (const Assignment& a : world.assignments()) {
      auto v = value_of(e, a), w = value_of(other, a);
      if (!v) continue;
      ASSERT_TRUE(r.lo <= *v && *v <= r.hi) << *v << " in " << r.lo << ".." << r.hi;
      ASSERT_TRUE(d == 0 ? *v == 0 : *v % d == 0) << d << " divides " << *v;
      ASSERT_TRUE(!below || !w || *v <= *w) << text(other);
    }
  };
  for_random_exprs(9, 3, check, true);
}

TEST(MathFuzz, SimplifyKeepsValuesNeverGrowsAndIsIdempotent) {
  int smaller = 0;
  for_random_exprs(7, 4, [&](const Expr& e, const RandomExprs& world) {
    const Expr s = simplify(e, world.facts());
    ASSERT_NO_FATAL_FAILURE(expect_equal(e, s, world));
    ASSERT_LE(s.size(), e.size()) << text(s);
    ASSERT_EQ(simplify(s, world.facts()), s) << text(s);
    smaller += s.size() < e.size();
  });
  EXPECT_GT(smaller, kWorlds * kExprsPerWorld / 5);
}

void parts(const Expr& e, std::vector<Expr>* all) {
  all->push_back(e);
  if (e.kind() == Expr::Kind::constant || e.kind() == Expr::Kind::symbol) return;
  parts(e.lhs(), all);
  parts(e.rhs(), all);
}

// Each rule alone, on every part of every expression, whether simplify() would take it or not.
TEST(MathFuzz, EveryRuleAloneKeepsValuesAndFires) {
  std::map<std::string, int> fired;
  for_random_exprs(8, 3, [&](const Expr& e, const RandomExprs& world) {
    std::vector<Expr> all;
    parts(e, &all);
    for (const SimplifyRule& rule : simplify_rules())
      for (const Expr& part : all) {
        auto got = rule.apply(part, world.facts());
        if (!got || *got == part) continue;
        ++fired[rule.name];
        ASSERT_NO_FATAL_FAILURE(expect_equal(part, *got, world)) << rule.name;
      }
  });
  for (const SimplifyRule& rule : simplify_rules()) {
    EXPECT_GE(fired[rule.name], kFirings) << rule.name;
    RecordProperty(rule.name, fired[rule.name]);
  }
}

}  // namespace
}  // namespace tw
