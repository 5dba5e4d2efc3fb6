// Whether index expressions stay where int64 computes them exactly.
#include <fmt/format.h>
#include <optional>

#include "tw/base/error.h"
#include "tw/ir/program.h"

namespace tw {
namespace {

/// An expression that leaves its range: where, what it is, and the values it may reach.
struct Escape {
  SourceLoc at;
  std::string what;
  Interval reached, wanted;
};

constexpr Interval kIndex{-kMaxIndex, kMaxIndex}, kExact{Interval::kMin + 1, Interval::kMax - 1};

class IndexRanges {
 public:
  IndexRanges(const Program& p, std::span<const Interval> dims)
      : program_(p), facts_(facts_of(p, dims)) {}

  std::optional<Escape> first_escape() {
    for (const Expr& e : program_.grid) check(e, "an extent of the grid", {}, kIndex);
    walk(program_, [&](const Op& op) { check_op(op); });
    return escape_;
  }

 private:
  void check_op(const Op& op) {
    if (escape_) return;
    if (const auto* loop = std::get_if<LoopAttr>(&op.attr)) {
      for (const Expr& e : {loop->lo, loop->hi, loop->step})
        check(e, "a loop bound", op.at, kIndex);
    } else if (const View* view = view_of(op)) {
      const std::string what =
          fmt::format("a coordinate of '{}'", program_.params[view->param].name);
      for (const Expr& e : view->origin) check(e, what, op.at, kIndex);
    } else {
      for_each_expr(op, [&](const Expr& e) { check(e, "an index", op.at, kExact); });
    }
  }

  /// Parts first: a sum may be small where a product in it is not.
  void check(const Expr& e, const std::string& what, SourceLoc at, Interval wanted) {
    if (escape_) return;
    if (e.kind() != Expr::Kind::constant && e.kind() != Expr::Kind::symbol) {
      check(e.lhs(), what, at, wanted);
      check(e.rhs(), what, at, wanted);
    }
    const Interval reached = bounds(e, facts_);
    if (escape_ || (reached.lo >= wanted.lo && reached.hi <= wanted.hi)) return;
    escape_ = Escape{at, fmt::format("{} ('{}')", what, text(e)), reached, wanted};
  }

  std::string text(const Expr& e) const {
    return to_string(e, [&](Symbol s) { return symbol_name(program_, s); });
  }

  const Program& program_;
  const Facts facts_;
  std::optional<Escape> escape_;
};

std::vector<Interval> up_to(const Program& p, int64_t limit) {
  return std::vector<Interval>(p.dims.size(), {0, limit});
}

[[noreturn]] void fail(const Program& p, const Escape& e) {
  const bool high = e.reached.hi > e.wanted.hi;
  const int64_t end = high ? e.reached.hi : e.reached.lo;
  const bool beyond = end == Interval::kMax || end == Interval::kMin;
  throw UserError(e.at,
                  fmt::format("{}: {} may be {}", p.name, e.what,
                              beyond ? "more than 64 bits hold"
                                     : fmt::format("as {} as {}", high ? "large" : "small", end)),
                  fmt::format("wanted within +-2^{}", e.wanted == kIndex ? 48 : 63));
}

}  // namespace

void check_indices(const Program& p, std::span<const int64_t> dims) {
  std::vector<Interval> exact;
  for (const int64_t d : dims) exact.push_back({d, d});
  if (const auto escape = IndexRanges(p, exact).first_escape()) fail(p, *escape);
}

int64_t dim_limit(const Program& p) {
  int64_t limit = kMaxDim;
  while (const auto escape = IndexRanges(p, up_to(p, limit)).first_escape()) {
    if (limit == 1) fail(p, *escape);
    limit /= 2;
  }
  return limit;
}

}  // namespace tw
