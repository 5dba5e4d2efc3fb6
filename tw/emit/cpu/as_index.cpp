#include "tw/emit/cpu/op_table.h"

namespace tw::cpu {
namespace {

class IndexOf {
 public:
  IndexOf(Expression& e, Through through) : e_(e), c_(e.context()), through_(through) {}

  std::optional<Expr> value(ValueId v, const Coords& at) {
    const Op* op = c_.def[v];
    const Type& type = c_.program.type(v);
    if (!op || e_.bindings().count(v) || !is_int(type.dtype)) return std::nullopt;
    Coords coords = at;
    for (size_t k = 0; k < coords.size(); ++k) {
      if (type.shape[k] == 1) coords[k] = 0;
    }
    std::optional<Expr> r = leaf(*op, coords);
    if (!r) r = moved(*op, coords);
    if (!r) r = of_two(*op, coords);
    if (!r) return std::nullopt;
    *r = simplify(*r, c_.facts);
    return fits(bounds(*r, c_.facts), type.dtype) ? r : std::nullopt;
  }

 private:
  static bool fits(const Interval& range, DType t) {
    if (range.lo == Interval::kMin || range.hi == Interval::kMax) return false;
    if (range.lo < static_cast<int64_t>(lowest(t))) return false;
    return bytes(t) == 8 || range.hi <= static_cast<int64_t>(largest(t));
  }

  static std::optional<Expr> leaf(const Op& op, const Coords& at) {
    if (op.code == Opcode::iota) return at[op.as<AxisAttr>().axis];
    if (op.code == Opcode::index) return op.as<IndexAttr>().value;
    if (op.code == Opcode::full && op.as<FullAttr>().value.integral)
      return op.as<FullAttr>().value.i;
    return std::nullopt;
  }

  std::optional<Expr> moved(const Op& op, const Coords& at) {
    const bool whole = through_ == Through::everything;
    const bool moves = op.code == Opcode::broadcast ||
                       (whole && (op.code == Opcode::reshape || op.code == Opcode::transpose ||
                                  op.code == Opcode::slice || op.code == Opcode::keep));
    if (moves) return value(op.in[0], source_of(c_, op, at));
    if (op.code == Opcode::cast) return value(op.in[0], at);
    return std::nullopt;
  }

  std::optional<Expr> of_two(const Op& op, const Coords& at) {
    const bool sums = op.code == Opcode::add || op.code == Opcode::sub || op.code == Opcode::mul;
    const bool divides = op.code == Opcode::div || op.code == Opcode::rem;
    if (!sums && !(divides && through_ == Through::everything)) return std::nullopt;
    const std::optional<Expr> a = value(op.in[0], at);
    if (!a) return std::nullopt;
    const std::optional<Expr> b = value(op.in[1], at);
    if (!b) return std::nullopt;
    if (op.code == Opcode::add) return *a + *b;
    if (op.code == Opcode::sub) return *a - *b;
    if (op.code == Opcode::mul) return *a * *b;
    // Those of tiles truncate, these floor.
    if (bounds(*a, c_.facts).lo < 0 || bounds(*b, c_.facts).lo < 0) return std::nullopt;
    return op.code == Opcode::div ? floordiv(*a, *b) : mod(*a, *b);
  }

  Expression& e_;
  Context& c_;
  const Through through_;
};

}  // namespace

Coords source_of(const Context& c, const Op& op, const Coords& at) {
  if (op.code == Opcode::transpose) {
    const std::vector<int>& perm = op.as<PermAttr>().perm;
    Coords source(at.size());
    for (size_t k = 0; k < perm.size(); ++k) source[perm[k]] = at[k];
    return source;
  }
  if (op.code == Opcode::slice) {
    const Extents& start = op.as<SliceAttr>().start;
    Coords source = at;
    for (size_t k = 0; k < source.size(); ++k) source[k] = source[k] + start[k];
    return source;
  }
  if (op.code != Opcode::reshape) return at;
  const Extents& from = c.program.type(op.in[0]).shape;
  const Extents& to = c.program.type(op.out[0]).shape;
  Expr flat = 0;
  for (size_t k = 0; k < to.size(); ++k) flat = flat * to[k] + at[k];
  Coords source(from.size());
  int64_t below = 1;
  for (size_t k = from.size(); k-- > 0;) {
    source[k] = simplify(mod(floordiv(flat, below), from[k]), c.facts);
    below *= from[k];
  }
  return source;
}

std::optional<Expr> as_index(Expression& e, ValueId v, const Coords& at, Through through) {
  return IndexOf(e, through).value(v, at);
}

}  // namespace tw::cpu
