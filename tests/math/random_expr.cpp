#include "tests/math/random_expr.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tw::test {
namespace {

__extension__ using Wide = __int128;

using Kind = Expr::Kind;

// In the order in which bounds may refer to each other: sizes, ids, counters from outside in.
const Symbol kSymbols[] = {{SymbolKind::dim, 0},  {SymbolKind::dim, 1}, {SymbolKind::dim, 2},
                           {SymbolKind::pid, 0},  {SymbolKind::pid, 1}, {SymbolKind::loop, 0},
                           {SymbolKind::loop, 1}, {SymbolKind::loop, 2}};

Wide floored(Wide a, Wide b) {
  if (b == 0) return 0;
  Wide q = a / b;
  while (q * b > a && b > 0) --q;
  while (q * b < a && b < 0) --q;
  return q;
}

Wide apply(Kind kind, Wide a, Wide b) {
  switch (kind) {
    case Kind::add:
      return a + b;
    case Kind::sub:
      return a - b;
    case Kind::mul:
      return a * b;
    case Kind::floordiv:
      return floored(a, b);
    case Kind::mod:
      return b == 0 ? 0 : a - b * floored(a, b);
    case Kind::min:
      return std::min(a, b);
    case Kind::max:
      return std::max(a, b);
    case Kind::constant:
    case Kind::symbol:
      break;
  }
  return 0;
}

}  // namespace

std::optional<int64_t> value_of(const Expr& e, const Assignment& values) {
  if (e.kind() == Kind::constant) return e.constant();
  if (e.kind() == Kind::symbol) return values.at(e.symbol());
  auto a = value_of(e.lhs(), values), b = value_of(e.rhs(), values);
  if (!a || !b) return std::nullopt;
  const Wide v = apply(e.kind(), *a, *b);
  using Limits = std::numeric_limits<int64_t>;
  if (v < Limits::min() || v > Limits::max()) return std::nullopt;
  return static_cast<int64_t>(v);
}

int64_t RandomExprs::pick(int64_t lo, int64_t hi) {
  return lo + static_cast<int64_t>(random_() % static_cast<uint64_t>(hi - lo + 1));
}

Expr RandomExprs::constant() {
  if (huge_ && pick(0, 2) == 0) return Expr(static_cast<int64_t>(random_()) >> pick(0, 3));
  constexpr std::array<int, 16> usual = {0, 1, 2, 3, 4, 4, 8, 8, 16, 16, 32, 64, 63, 65, -1, -8};
  return pick(0, 3) == 0 ? Expr(pick(-20, 20)) : Expr(usual[pick(0, usual.size() - 1)]);
}

Expr RandomExprs::leaf() {
  if (pick(0, 3) == 0) return constant();
  const Symbol s = kSymbols[pick(0, std::size(kSymbols) - 1)];
  return Expr::symbol(s.kind, s.id);
}

// x again from its parts, or nearly so.
Expr RandomExprs::quotient_and_remainder(int depth) {
  const Expr x = expr(depth), y = leaf();
  const Expr whole = floordiv(x, y) * y;
  return pick(0, 1) ? whole + mod(x, y) : pick(0, 1) ? x - whole : whole;
}

Expr RandomExprs::expr(int depth) {
  if (depth == 0 || pick(0, 9) == 0) return leaf();
  if (pick(0, 29) == 0) return quotient_and_remainder(depth - 1);
  if (pick(0, 29) == 0) return cdiv(cdiv(expr(depth - 1), constant()), constant());
  constexpr std::array<Kind, 11> kinds = {Kind::add, Kind::add, Kind::add,      Kind::sub,
                                          Kind::mul, Kind::mul, Kind::floordiv, Kind::floordiv,
                                          Kind::mod, Kind::min, Kind::max};
  const Kind kind = kinds[pick(0, kinds.size() - 1)];
  const Expr a = expr(depth - 1);
  const bool by_constant =
      kind == Kind::mul || kind == Kind::floordiv || kind == Kind::mod ? pick(0, 3) != 0 : false;
  // A part that comes again gives cancellation and absorption something to do.
  const bool again = !by_constant && pick(0, 7) == 0 && a.size() > 1 && a.kind() != Kind::symbol;
  const Expr b = by_constant ? constant() : again ? a.lhs() : expr(depth - 1);
  return pick(0, 1) == 0 && !by_constant ? Expr::binary(kind, b, a) : Expr::binary(kind, a, b);
}

std::optional<Expr> RandomExprs::bound(Symbol s, bool upper, int64_t value) {
  std::vector<Symbol> earlier;
  for (const Symbol& other : kSymbols) {
    if (other == s) break;
    earlier.push_back(other);
  }
  if (earlier.empty() || pick(0, 1) == 0) return std::nullopt;
  const Symbol other = earlier[pick(0, earlier.size() - 1)];
  const Expr o = Expr::symbol(other.kind, other.id);
  const int64_t k = int64_t{1} << pick(0, 6);
  const std::array<Expr, 5> forms = {o, cdiv(o, k), o * k, o + k, min(o * 4, k)};
  const Expr e = forms[pick(0, forms.size() - 1)];
  const int64_t v = *value_of(e, assignments_[0]);
  if (upper ? value < v : value >= v) return e;
  return std::nullopt;
}

SymbolFact RandomExprs::fact(Symbol s, int64_t value) {
  SymbolFact f;
  if (pick(0, 1)) f.range.lo = value - pick(0, 3) * pick(0, 40);
  if (pick(0, 1)) f.range.hi = value + pick(0, 3) * pick(0, 40);
  for (int64_t m : {64, 48, 32, 16, 12, 8, 2})
    if (f.multiple_of == 1 && value % m == 0 && pick(0, 2) != 0) f.multiple_of = m;
  f.from = bound(s, false, value);
  f.below = bound(s, true, value);
  return f;
}

bool RandomExprs::holds(const Assignment& a) const {
  return std::all_of(a.begin(), a.end(), [&](const auto& entry) {
    const auto& [s, v] = entry;
    if (s.kind != SymbolKind::loop && v < 0) return false;
    auto it = facts_.find(s);
    if (it == facts_.end()) return true;
    const SymbolFact& f = it->second;
    return v >= f.range.lo && v <= f.range.hi && v % f.multiple_of == 0 &&
           (!f.from || v >= *value_of(*f.from, a)) && (!f.below || v < *value_of(*f.below, a));
  });
}

Assignment RandomExprs::variation() {
  Assignment a = assignments_[pick(0, assignments_.size() - 1)];
  for (int changes = pick(1, 3); changes > 0; --changes) {
    const Symbol s = kSymbols[pick(0, std::size(kSymbols) - 1)];
    auto it = facts_.find(s);
    const int64_t step = it == facts_.end() ? 1 : it->second.multiple_of;
    a[s] += step * pick(-4, 4);
  }
  return a;
}

void RandomExprs::new_world() {
  facts_.clear();
  assignments_.assign(1, {});
  for (const Symbol& s : kSymbols) {
    const int64_t size = pick(0, 3) == 0 ? 64 * pick(0, 9) : pick(0, 70);
    assignments_[0][s] = s.kind == SymbolKind::loop && pick(0, 4) == 0 ? -size : size;
  }
  for (const Symbol& s : kSymbols)
    if (pick(0, 4) != 0) facts_[s] = fact(s, assignments_[0].at(s));
  for (int i = 0; i < 12; ++i) {
    const Assignment a = variation();
    if (holds(a)) assignments_.push_back(a);
  }
}

}  // namespace tw::test
