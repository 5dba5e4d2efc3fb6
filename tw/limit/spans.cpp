#include "tw/limit/impl/spans.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace tw {

namespace {

Interval quotient(const Interval& a, const Interval& b) {
  if (b.lo != b.hi || b.lo <= 0) return {};
  const auto floored = [&](int64_t x) { return x / b.lo - (x % b.lo < 0 ? 1 : 0); };
  return {floored(a.lo), floored(a.hi)};
}

Interval remainder(const Interval& a, const Interval& b) {
  if (b.lo != b.hi || b.lo <= 0) return {};
  const Interval q = quotient(a, b);
  if (q.lo == q.hi) return {a.lo - q.lo * b.lo, a.hi - q.lo * b.lo};
  return {0, b.lo - 1};
}

bool is_open(const Interval& a) {  // far out enough that sums of such might leave int64
  constexpr int64_t kFar = int64_t{1} << 60;
  return a.lo < -kFar || a.hi > kFar;
}

Interval product(const Interval& a, const Interval& b) {
  const std::array<__int128, 4> all = {
      static_cast<__int128>(a.lo) * b.lo, static_cast<__int128>(a.lo) * b.hi,
      static_cast<__int128>(a.hi) * b.lo, static_cast<__int128>(a.hi) * b.hi};
  const auto [lo, hi] = std::ranges::minmax(all);
  if (lo < Interval::kMin || hi > Interval::kMax) return {};
  return {static_cast<int64_t>(lo), static_cast<int64_t>(hi)};
}

Interval combined(Expr::Kind kind, const Interval& a, const Interval& b) {
  if (is_open(a) || is_open(b)) return {};
  switch (kind) {
    case Expr::Kind::add:
      return {a.lo + b.lo, a.hi + b.hi};
    case Expr::Kind::sub:
      return {a.lo - b.hi, a.hi - b.lo};
    case Expr::Kind::mul:
      return product(a, b);
    case Expr::Kind::floordiv:
      return quotient(a, b);
    case Expr::Kind::mod:
      return remainder(a, b);
    case Expr::Kind::min:
      return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case Expr::Kind::max:
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    case Expr::Kind::constant:
    case Expr::Kind::symbol:
      break;
  }
  return {};
}

std::optional<Expr::Kind> kind_of(Opcode code) {
  static constexpr std::array kKinds = {
      std::pair{Opcode::add, Expr::Kind::add}, std::pair{Opcode::sub, Expr::Kind::sub},
      std::pair{Opcode::mul, Expr::Kind::mul}, std::pair{Opcode::div, Expr::Kind::floordiv},
      std::pair{Opcode::rem, Expr::Kind::mod}, std::pair{Opcode::min, Expr::Kind::min},
      std::pair{Opcode::max, Expr::Kind::max}};
  for (const auto& [of, kind] : kKinds)
    if (of == code) return kind;
  return std::nullopt;
}

/// Blocks of so many elements that begin there all lie inside of [0, dim), or all outside.
bool on_one_side(const Interval& begin, int64_t extent, int64_t dim) {
  return (begin.lo >= 0 && begin.hi <= dim - extent) || begin.hi <= -extent || begin.lo >= dim;
}

}  // namespace

Spans::Spans(const Program& p, const Sizes& sizes, const Known& known)
    : p_(p), sizes_(sizes), known_(known) {
  walk(p, [this](const Op& op) { look(op); });
}

void Spans::add(const std::vector<Expr>& of, const Check& check) {
  std::set<Symbol> symbols;
  for (const Expr& e : of) for_each_symbol(e, [&](Symbol s) { symbols.insert(s); });
  for (Symbol s : symbols)
    if (s.kind != SymbolKind::dim) checks_[s].push_back(check);
}

void Spans::add(ValueId of, const Check& check) {
  std::vector<Expr> from;
  std::set<ValueId> seen;
  std::vector<ValueId> left = {of};
  while (!left.empty()) {
    const ValueId v = left.back();
    left.pop_back();
    if (!seen.insert(v).second) continue;
    const Op& op = *known_.giver(v);
    if (op.code == Opcode::index) from.push_back(op.as<IndexAttr>().value);
    left.insert(left.end(), op.in.begin(), op.in.end());
  }
  add(from, check);
}

void Spans::look(const Op& op) {
  if (op.code == Opcode::for_) {
    const auto& loop = op.as<LoopAttr>();
    loops_[loop.loop] = loop;
    for (const Expr& e : {loop.lo, loop.hi, loop.step})
      add({e}, [this, e](const Range& r) {
        const Interval all = bounds(e, r);
        return all.lo == all.hi;
      });
  } else if (op.code == Opcode::if_) {
    const auto& c = op.as<CondAttr>();
    add({c.a, c.b},
        [this, c](const Range& r) { return decided(c.kind, bounds(c.a, r), bounds(c.b, r)); });
  } else if (op.code == Opcode::load || op.code == Opcode::store) {
    look_view(op, op.as<ViewAttr>().view);
  }
  look_coordinates(op);
}

void Spans::look_view(const Op& op, const View& view) {
  const Extents& shape = p_.type(op.code == Opcode::load ? op.out[0] : op.in[0]).shape;
  Extents extents(view.origin.size(), 1);
  for (size_t k = 0; k < view.axes.size(); ++k)
    extents[static_cast<size_t>(view.axes[k])] = shape[k];
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const Expr origin = view.origin[axis];
    const int64_t dim = sizes_.value(p_.params[view.param].dims[axis], {});
    add({origin}, [this, origin, dim, extent = extents[axis]](const Range& r) {
      return on_one_side(bounds(origin, r), extent, dim);
    });
  }
}

/// Masks, and coordinates of elements that may lie outside.
void Spans::look_coordinates(const Op& op) {
  const std::vector<ValueId> all = deciding(op);
  const View* view = op.code == Opcode::where ? nullptr : view_of(op);
  for (size_t k = 0; k < all.size(); ++k) {
    const ValueId v = all[k];
    if (!known_.follows(v)) continue;
    const bool coordinate = view != nullptr && k < view->axes.size();
    const Expr dim = coordinate ? p_.params[view->param].dims[view->axes[k]] : Expr(0);
    add(v, [this, v, coordinate, n = sizes_.value(dim, {})](const Range& r) {
      const std::optional<Interval> b = bounds(v, r);
      return b && (coordinate ? on_one_side(*b, 1, n) : b->lo == b->hi);
    });
  }
}

bool Spans::decided(CompareKind kind, const Interval& a, const Interval& b) const {
  const bool apart = a.hi < b.lo || b.hi < a.lo;
  if (kind == CompareKind::lt) return a.hi < b.lo || a.lo >= b.hi;
  if (kind == CompareKind::le) return a.hi <= b.lo || a.lo > b.hi;
  return apart || (a.lo == a.hi && a == b);
}

Interval Spans::bounds(Symbol s, const Range& r) const {
  if (s == r.spanned) return r.values;
  if (s.kind == SymbolKind::dim) {
    const int64_t n = sizes_.value(Expr::symbol(s), {});
    return {n, n};
  }
  if (const auto found = r.at.find(s); found != r.at.end()) return {found->second, found->second};
  if (s.kind == SymbolKind::pid) return {0, sizes_.grid()[static_cast<size_t>(s.id)] - 1};
  const LoopAttr& loop = loops_.at(s.id);
  const Interval lo = bounds(loop.lo, r), hi = bounds(loop.hi, r);
  return {lo.lo, std::max(lo.lo, hi.hi - (hi.hi == Interval::kMin ? 0 : 1))};
}

Interval Spans::bounds(const Expr& e, const Range& r) const {
  if (e.is_constant()) return {e.constant(), e.constant()};
  if (e.kind() == Expr::Kind::symbol) return bounds(e.symbol(), r);
  return combined(e.kind(), bounds(e.lhs(), r), bounds(e.rhs(), r));
}

std::optional<Interval> Spans::bounds(ValueId v, const Range& r) const {
  const Op& op = *known_.giver(v);
  if (op.code == Opcode::iota)
    return Interval{0, p_.type(v).shape[static_cast<size_t>(op.as<AxisAttr>().axis)] - 1};
  if (op.code == Opcode::index) return bounds(op.as<IndexAttr>().value, r);
  if (op.code == Opcode::full)
    return Interval{op.as<FullAttr>().value.i, op.as<FullAttr>().value.i};
  const std::optional<Interval> a = bounds(op.in[0], r);
  if (!a || op.in.size() == 1) return op.code == Opcode::not_ ? std::nullopt : a;
  const std::optional<Interval> b = bounds(op.in[1], r);
  if (!b) return std::nullopt;
  if (const auto kind = comparison(op.code)) {
    if (!decided(*kind, *a, *b)) return std::nullopt;
    const int64_t holding = holds(*kind, a->lo, b->lo);
    return Interval{holding, holding};
  }
  if (op.code == Opcode::and_ || op.code == Opcode::or_) {
    if (a->lo != a->hi || b->lo != b->hi) return std::nullopt;
    const int64_t both = op.code == Opcode::and_ ? a->lo & b->lo : a->lo | b->lo;
    return Interval{both, both};
  }
  const auto kind = kind_of(op.code);
  const bool divides = kind == Expr::Kind::floordiv || kind == Expr::Kind::mod;
  if (divides && a->lo < 0) return std::nullopt;  // those of tiles truncate
  return kind ? std::optional(combined(*kind, *a, *b)) : std::nullopt;
}

bool Spans::alike(Symbol s, const Range& r) const {
  const auto found = checks_.find(s);
  return found == checks_.end() ||
         std::ranges::all_of(found->second, [&](const Check& check) { return check(r); });
}

std::vector<Span> Spans::of(Symbol s, int64_t lo, int64_t n, int64_t step, const Coordinates& at,
                            int64_t most) const {
  struct Part {
    int64_t first, n;
  };
  std::vector<Span> done;
  std::vector<Part> open = {{0, n}};
  const auto finish = [&](const Part& p) {
    done.push_back({lo + (p.first + p.n / 2) * step, static_cast<double>(p.n)});
  };
  while (!open.empty() && static_cast<int64_t>(open.size()) <= most) {
    std::vector<Part> next;
    for (const Part& p : open) {
      const Interval values{lo + p.first * step, lo + (p.first + p.n - 1) * step};
      if (p.n <= 1 || alike(s, {at, s, values})) {
        if (p.n > 0) finish(p);
        continue;
      }
      next.push_back({p.first, p.n / 2});
      next.push_back({p.first + p.n / 2, p.n - p.n / 2});
    }
    open = std::move(next);
  }
  for (const Part& p : open) finish(p);
  return done;
}

}  // namespace tw
