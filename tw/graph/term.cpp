#include "tw/graph/term.h"

#include <fmt/format.h>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "tw/base/error.h"

namespace tw::graph {

namespace {

Term make(TermNode node) { return std::make_shared<const TermNode>(std::move(node)); }

Term op_of(Opcode code, DType t, std::vector<Term> in) {
  if (static_cast<int>(in.size()) != info(code).operands || info(code).effect != Effect::pure)
    throw InternalError(fmt::format("a term is no {} of {}", info(code).name, in.size()));
  TermNode n;
  n.kind = TermKind::op;
  n.dtype = t;
  n.code = code;
  n.in = std::move(in);
  return make(std::move(n));
}

void same_type(Opcode code, const Term& a, const Term& b) {
  if (a->dtype != b->dtype)
    throw InternalError(fmt::format("terms of {} have types {} and {}", info(code).name,
                                    name(a->dtype), name(b->dtype)));
}

/// The term that replaces an axis; null: it stays.
Term replacement(const std::vector<Term>& axes, Symbol s) {
  const auto k = static_cast<size_t>(s.id);
  return s.kind == SymbolKind::loop && k < axes.size() ? axes[k] : nullptr;
}

Term substituted_index(const Expr& e, const std::vector<Term>& axes) {
  bool expressions = true;
  for_each_symbol(e, [&](Symbol s) {
    const Term t = replacement(axes, s);
    expressions &= !t || t->kind == TermKind::index;
  });
  if (expressions)
    return index(tw::substitute(e, [&](Symbol s) -> std::optional<Expr> {
      const Term t = replacement(axes, s);
      return t ? std::optional(t->index) : std::nullopt;
    }));
  if (e.kind() == Expr::Kind::symbol) return replacement(axes, e.symbol());
  return substitute(as_ops(e, {}), axes);
}

}  // namespace

bool compares(Opcode c) {
  return c == Opcode::eq || c == Opcode::ne || c == Opcode::lt || c == Opcode::le;
}

Term constant(DType t, const Number& value) {
  TermNode n;
  n.dtype = t;
  n.value = value;
  return make(std::move(n));
}

Term constant(DType t, double value) {
  if (is_float(t)) return constant(t, Number{false, 0, value});
  return constant_int(t, static_cast<int64_t>(value));
}

Term constant_int(DType t, int64_t value) {
  if (is_float(t)) return constant(t, Number{false, 0, static_cast<double>(value)});
  return constant(t, Number{true, value, static_cast<double>(value)});
}

Term index(const Expr& e) {
  TermNode n;
  n.kind = TermKind::index;
  n.dtype = i64;
  n.index = e;
  return make(std::move(n));
}

Term axis(int k) { return index(Expr::symbol(axis_symbol(k))); }

std::vector<Term> axis_terms(int count) {
  std::vector<Term> all;
  for (int k = 0; k < count; ++k) all.push_back(axis(k));
  return all;
}

Term load(int operand, DType t, std::vector<Term> at, std::optional<Number> pad) {
  for (const Term& c : at)
    if (c->dtype != i64) throw InternalError("a coordinate is no i64");
  TermNode n;
  n.kind = TermKind::load;
  n.dtype = t;
  n.operand = operand;
  n.in = std::move(at);
  n.pad = pad;
  return make(std::move(n));
}

Term op(Opcode code, const Term& a) { return op_of(code, a->dtype, {a}); }

Term op(Opcode code, const Term& a, const Term& b) {
  same_type(code, a, b);
  return op_of(code, compares(code) ? b1 : a->dtype, {a, b});
}

Term where(const Term& mask, const Term& a, const Term& b) {
  same_type(Opcode::where, a, b);
  if (mask->dtype != b1) throw InternalError("a mask is no b1");
  return op_of(Opcode::where, a->dtype, {mask, a, b});
}

Term cast(const Term& x, DType t) {
  if (x->dtype == t) return x;
  TermNode n;
  n.kind = TermKind::cast;
  n.dtype = t;
  n.in = {x};
  return make(std::move(n));
}

Term result(DType t) {
  TermNode n;
  n.kind = TermKind::result;
  n.dtype = t;
  return make(std::move(n));
}

void for_each(const Term& t, const std::function<void(const TermNode&)>& visit) {
  std::unordered_set<const TermNode*> seen;
  const std::function<void(const Term&)> walk = [&](const Term& n) {
    if (!seen.insert(n.get()).second) return;
    for (const Term& i : n->in) walk(i);
    visit(*n);
  };
  walk(t);
}

Term rewrite(const Term& t, const Change& change) {
  std::unordered_map<const TermNode*, Term> done;
  const std::function<Term(const Term&)> walk = [&](const Term& n) -> Term {
    if (const auto at = done.find(n.get()); at != done.end()) return at->second;
    Term now = n;
    std::vector<Term> in;
    for (const Term& i : n->in) in.push_back(walk(i));
    if (in != n->in) {
      TermNode copy = *n;
      copy.in = std::move(in);
      now = make(std::move(copy));
    }
    if (const Term other = change(now)) now = other;
    return done[n.get()] = now;
  };
  return walk(t);
}

Term substitute(const Term& t, const std::vector<Term>& axes) {
  return rewrite(t, [&](const Term& n) -> Term {
    return n->kind == TermKind::index ? substituted_index(n->index, axes) : nullptr;
  });
}

std::optional<int> axis_at(const Term& t) {
  if (t->kind != TermKind::index || t->index.kind() != Expr::Kind::symbol) return std::nullopt;
  const Symbol s = t->index.symbol();
  return s.kind == SymbolKind::loop ? std::optional(s.id) : std::nullopt;
}

Expr product_of_dims(std::span<const Expr> dims) {
  return std::accumulate(dims.begin(), dims.end(), Expr(1),
                         [](const Expr& a, const Expr& b) { return a * b; });
}

std::vector<Expr> unflatten(const Expr& flat, std::span<const Expr> extents) {
  std::vector<Expr> coordinates(extents.size());
  Expr inner = 1;
  for (size_t k = extents.size(); k-- > 0;) {
    const Expr above = inner == Expr(1) ? flat : floordiv(flat, inner);
    coordinates[k] = k == 0 ? above : mod(above, extents[k]);
    inner = inner * extents[k];
  }
  return coordinates;
}

bool mentions_axes(const Expr& e) {
  bool any = false;
  for_each_symbol(e, [&](Symbol s) { any |= s.kind == SymbolKind::loop; });
  return any;
}

Term as_ops(const Expr& e, const Facts& facts) {
  if (e.kind() == Expr::Kind::symbol || !mentions_axes(e)) return index(e);
  const Term a = index(e.lhs()), b = index(e.rhs()), zero = constant_int(i64, 0);
  const bool natural = bounds(e.lhs(), facts).lo >= 0 && bounds(e.rhs(), facts).lo >= 0;
  switch (e.kind()) {
    case Expr::Kind::add:
      return op(Opcode::add, a, b);
    case Expr::Kind::sub:
      return op(Opcode::sub, a, b);
    case Expr::Kind::mul:
      return op(Opcode::mul, a, b);
    case Expr::Kind::min:
      return op(Opcode::min, a, b);
    case Expr::Kind::max:
      return op(Opcode::max, a, b);
    case Expr::Kind::mod: {
      const Term r = op(Opcode::rem, a, b);  // truncates: of the other sign, one period more
      if (natural) return r;
      return where(op(Opcode::lt, op(Opcode::mul, r, b), zero), op(Opcode::add, r, b), r);
    }
    case Expr::Kind::floordiv: {
      const Term q = op(Opcode::div, a, b);
      if (natural) return q;
      const Term below = op(Opcode::lt, op(Opcode::mul, op(Opcode::rem, a, b), b), zero);
      return where(below, op(Opcode::sub, q, constant_int(i64, 1)), q);
    }
    case Expr::Kind::constant:
    case Expr::Kind::symbol:
      break;
  }
  throw InternalError("an expression of no kind");
}

uint64_t axes_of(const Term& t) {
  uint64_t axes = 0;
  for_each(t, [&](const TermNode& n) {
    if (n.kind != TermKind::index) return;
    for_each_symbol(n.index, [&](Symbol s) {
      if (s.kind == SymbolKind::loop) axes |= uint64_t{1} << s.id;
    });
  });
  return axes;
}

int64_t size(const Term& t) {
  int64_t nodes = 0;
  for_each(t, [&](const TermNode&) { ++nodes; });
  return nodes;
}

}  // namespace tw::graph
