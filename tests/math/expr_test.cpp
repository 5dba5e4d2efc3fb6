#include "tw/math/expr.h"

#include "tests/math/symbols.h"
#include "tests/support/expect_error.h"

namespace tw {
namespace {

using test::dim, test::loop, test::parsed, test::pid, test::text;

const int64_t kMax = std::numeric_limits<int64_t>::max();
const int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(Expr, BuildersApplyLocalIdentities) {
  const Expr x = dim(0);
  EXPECT_EQ(text(x + 0), "d0");
  EXPECT_EQ(text(x * 1), "d0");
  EXPECT_EQ(text(x * 0), "0");
  EXPECT_EQ(text(3 + x), "d0 + 3");
  EXPECT_EQ(text(x + 3 - 5), "d0 - 2");
  EXPECT_EQ(text(2 * x * 3), "d0*6");
  EXPECT_EQ(text(min(min(x, 3), 5)), "min(d0, 3)");
  EXPECT_EQ(text(Expr(7) - 9), "-2");
  EXPECT_EQ(text(floordiv(x, 1)), "d0");
  EXPECT_EQ(text(mod(x, 1)), "0");
}

TEST(Expr, DivisionFloorsAndZeroGivesZero) {
  EXPECT_EQ(floordiv(Expr(-7), Expr(2)).constant(), -4);
  EXPECT_EQ(floordiv(Expr(7), Expr(-2)).constant(), -4);
  EXPECT_EQ(mod(Expr(-7), Expr(2)).constant(), 1);
  EXPECT_EQ(mod(Expr(7), Expr(-2)).constant(), -1);
  EXPECT_EQ(floordiv(Expr(7), Expr(0)).constant(), 0);
  EXPECT_EQ(mod(Expr(7), Expr(0)).constant(), 0);
  EXPECT_EQ(cdiv(Expr(65), Expr(64)).constant(), 2);
  EXPECT_EQ(mod(Expr(kMin), Expr(-1)).constant(), 0);
}

TEST(Expr, PrintsWithCPrecedence) {
  const Expr a = dim(0), b = pid(0), c = loop(0);
  EXPECT_EQ(text(b * 64 + floordiv(a, 2)), "p0*64 + floordiv(d0, 2)");
  EXPECT_EQ(text((a + b) * c), "(d0 + p0)*i0");
  EXPECT_EQ(text(a - (b - c)), "d0 - (p0 - i0)");
  EXPECT_EQ(text(a * (b * c)), "d0*(p0*i0)");
  EXPECT_EQ(text(0 - a), "-d0");
  EXPECT_EQ(text((0 - a) * -3), "-d0*-3");
  EXPECT_EQ(text(cdiv(a, 64)), "cdiv(d0, 64)");
  EXPECT_EQ(text(cdiv(a * 2 + b, c)), "cdiv(d0*2 + p0, i0)");
  EXPECT_EQ(text(min(mod(a, b), max(b, c))), "min(mod(d0, p0), max(p0, i0))");
}

TEST(Expr, ParsesWhatItPrints) {
  for (const char* s : {"-d0*-3", "d0 - (p0 - i0)", "cdiv(d0, 64)", "-9223372036854775808", "--d0",
                        "floordiv(d0 + 5, 64) - mod(-3 - p0, i0)"})
    EXPECT_EQ(text(parsed(s)), s);
  EXPECT_EQ(text(parsed(" 3+ d0 *2")), "d0*2 + 3");
}

TEST(Expr, SaysWhereTextIsWrong) {
  TW_EXPECT_ERROR(UserError, "an integer, a name or '(' is missing at offset 5",
                  [] { parsed("d0 + "); });
  TW_EXPECT_ERROR(UserError, "unknown name 'q' at offset 3", [] { parsed("d0*q"); });
  TW_EXPECT_ERROR(UserError, "there are floordiv, mod, cdiv, min and max",
                  [] { parsed("sqrt(d0, 1)"); });
  TW_EXPECT_ERROR(UserError, "',' is missing at offset 6", [] { parsed("min(d0)"); });
  TW_EXPECT_ERROR(UserError, "')' is missing at offset 8", [] { parsed("(d0 + p0"); });
  TW_EXPECT_ERROR(UserError, "trailing text at offset 3", [] { parsed("d0 p0"); });
  TW_EXPECT_ERROR(UserError, "does not fit in 64 bits", [] { parsed("9223372036854775808"); });
}

TEST(Expr, EqualityAndHashAreStructural) {
  EXPECT_EQ(dim(0) + pid(1), dim(0) + pid(1));
  EXPECT_EQ((dim(0) + pid(1)).hash(), (dim(0) + pid(1)).hash());
  EXPECT_FALSE(dim(0) + pid(1) == pid(1) + dim(0));
  EXPECT_FALSE(dim(0) == pid(0));
  EXPECT_FALSE(Expr(1) == Expr(2));
}

TEST(Expr, OverflowIsAnErrorNotAWrongNumber) {
  const Expr x = dim(0);
  auto at = [](int64_t v) { return [v](Symbol) { return v; }; };
  EXPECT_EQ(evaluate(x * 3 + 1, at(5)), 16);
  TW_EXPECT_ERROR(UserError, "leaves the range of 64 bits", [&] { evaluate(x * x, at(kMax)); });
  TW_EXPECT_ERROR(UserError, "leaves the range of 64 bits",
                  [&] { evaluate(floordiv(x, Expr(-1)), at(kMin)); });
  EXPECT_EQ(text(Expr(kMax) + 1), "9223372036854775807 + 1");
}

TEST(Expr, SubstitutesAndVisits) {
  const Expr e = dim(0) * 2 + min(pid(0), dim(0));
  const Expr got = substitute(e, [](Symbol s) -> std::optional<Expr> {
    if (s.kind == SymbolKind::dim) return Expr(8);
    return std::nullopt;
  });
  EXPECT_EQ(text(got), "min(p0, 8) + 16");
  int visits = 0;
  for_each_symbol(e, [&](Symbol) { ++visits; });
  EXPECT_EQ(visits, 3);
  EXPECT_EQ(e.size(), 7);
}

}  // namespace
}  // namespace tw
