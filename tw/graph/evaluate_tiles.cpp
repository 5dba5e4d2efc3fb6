#include "tw/graph/evaluate_tiles.h"

#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"

namespace tw::graph {

namespace {

Constant constant_of(const Number& n) { return n.integral ? Constant(n.i) : Constant(n.f); }

/// An axis plus something that no axis of the block decides.
struct Offset {
  int axis = -1;  // none
  Expr rest;
};

}  // namespace

TileView window_of(const TensorRef& x, std::vector<Index> origin, Extents extents) {
  if (extents.size() < 2 || extents[0] != 1) return x.window(origin, extents);
  const Index first = origin[0];
  return window_of(x[first], {origin.begin() + 1, origin.end()},
                   {extents.begin() + 1, extents.end()});
}

Parameters::Parameters(Trace& k, const Graph& g, const Loops& l) : k_(k), g_(g) {
  const auto extents = [&](const std::vector<Expr>& dims) {
    std::vector<Index> all;
    for (const Expr& e : dims) all.push_back(extent(e));
    return all;
  };
  for (size_t j = 0; j < l.operand_dims.size(); ++j)
    operands_.push_back(
        k.input(fmt::format("x{}", j), l.operand_types[j], extents(l.operand_dims[j])));
  result_.emplace(k.output("y", l.compute.dtype(), extents(l.result_dims())));
}

Index Parameters::extent(const Expr& e) {
  if (e.is_constant()) return e.constant();
  const std::string text = g_.text(e);
  const auto at = dims_.find(text);
  if (at != dims_.end()) return at->second;
  return dims_.emplace(text, k_.dim(fmt::format("n{}", dims_.size()))).first->second;
}

Index Parameters::index(const Expr& e) {
  if (e.is_constant()) return e.constant();
  if (const auto at = dims_.find(g_.text(e)); at != dims_.end()) return at->second;
  if (e.kind() == Expr::Kind::symbol) {
    const std::string name = fmt::format("n{}", dims_.size());
    scalars_.emplace_back(name, e);
    return dims_.emplace(g_.text(e), k_.dim(name)).first->second;
  }
  const Index a = index(e.lhs()), b = index(e.rhs());
  return {Expr::binary(e.kind(), a.expr(), b.expr()), a.owner() ? a.owner() : b.owner()};
}

TileEvaluator::TileEvaluator(Trace& k, const Graph& g, const Loops& l, Parameters& parameters,
                             Block block)
    : k_(k),
      g_(g),
      l_(l),
      parameters_(parameters),
      block_(std::move(block)),
      facts_(facts_of(l.compute.axes)) {}

Tile TileEvaluator::value(const Term& t) {
  if (const auto at = known_.find(t.get()); at != known_.end()) return at->second;
  return known_.emplace(t.get(), fresh(*t)).first->second;
}

Tile TileEvaluator::fresh(const TermNode& n) {
  switch (n.kind) {
    case TermKind::constant:
      return k_.full(n.dtype, ones(), constant_of(n.value));
    case TermKind::index:
      return of_expr(simplify(n.index, facts_));
    case TermKind::load:
      return loaded(n);
    case TermKind::op:
      return applied(n);
    case TermKind::cast:
      return cast(value(n.in[0]), n.dtype);
    case TermKind::result:
      return *result_;
  }
  throw InternalError("a term of no kind");
}

Tile TileEvaluator::applied(const TermNode& n) {
  if (n.code == Opcode::where) return where(value(n.in[0]), value(n.in[1]), value(n.in[2]));
  if (n.in.size() == 1) return elementwise(n.code, value(n.in[0]));
  return elementwise(n.code, value(n.in[0]), value(n.in[1]));
}

Tile TileEvaluator::axis_index(int k) {
  if (const auto at = axes_.find(k); at != axes_.end()) return at->second;
  const auto a = static_cast<size_t>(k);
  Extents shape = ones();
  shape[a] = block_.extents[a];
  Tile t = shape[a] == 1 ? k_.zeros(i64, shape) + block_.origin[a]
                         : k_.iota(shape, k) + block_.origin[a];
  return axes_.emplace(k, t).first->second;
}

Tile TileEvaluator::of_expr(const Expr& e) {
  if (!mentions_axes(e)) return k_.zeros(i64, ones()) + parameters_.index(e);
  if (e.kind() == Expr::Kind::symbol) return axis_index(e.symbol().id);
  const Term t = as_ops(e, facts_);
  made_.push_back(t);
  return value(t);
}

std::optional<Tile> TileEvaluator::loaded_block(const TermNode& n) {
  // Every coordinate is an axis of its own plus something fixed, or fixed.
  const auto offset_of = [&](const Expr& e) -> std::optional<Offset> {
    Offset o{-1, e};
    int axes = 0;
    for_each_symbol(e, [&](Symbol s) {
      if (s.kind != SymbolKind::loop || s.id == o.axis) return;
      o.axis = s.id;
      ++axes;
    });
    if (axes == 0) return o;
    o.rest = simplify(e - Expr::symbol(axis_symbol(o.axis)), facts_);
    return axes == 1 && !mentions_axes(o.rest) ? std::optional(o) : std::nullopt;
  };
  std::vector<Index> origin;
  Extents extents;
  std::vector<int> order;  // axes of the block, as the tile has them
  for (const Term& c : n.in) {
    if (c->kind != TermKind::index) return std::nullopt;
    const std::optional<Offset> o = offset_of(simplify(c->index, facts_));
    if (!o) return std::nullopt;
    if (o->axis < 0) {
      origin.push_back(parameters_.index(o->rest));
      extents.push_back(1);
      order.push_back(-1);
      continue;
    }
    if (std::find(order.begin(), order.end(), o->axis) != order.end()) return std::nullopt;
    order.push_back(o->axis);
    const auto a = static_cast<size_t>(o->axis);
    origin.push_back(block_.origin[a] + parameters_.index(o->rest));
    extents.push_back(block_.extents[a]);
  }
  const Tile block = load(window_of(parameters_.operand(n.operand), origin, extents),
                          {.pad = n.pad ? constant_of(*n.pad) : Constant(0)});
  order.erase(order.begin(), order.end() - static_cast<ptrdiff_t>(block.type().shape.size()));
  std::vector<int> perm;  // axes of the tile in the block's order, fixed ones first
  for (int k = 0; k < static_cast<int>(order.size()); ++k) perm.push_back(k);
  std::stable_sort(perm.begin(), perm.end(), [&](int x, int y) {
    return order[static_cast<size_t>(x)] < order[static_cast<size_t>(y)];
  });
  const Tile t = std::is_sorted(perm.begin(), perm.end()) ? block : transpose(block, perm);
  Extents shape = ones();
  for (int a : order)
    if (a >= 0) shape[static_cast<size_t>(a)] = block_.extents[static_cast<size_t>(a)];
  return shape == t.type().shape ? t : reshape(t, shape);
}

Tile TileEvaluator::loaded(const TermNode& n) {
  if (const std::optional<Tile> t = loaded_block(n)) return *t;
  std::vector<Arg> at;
  for (const Term& c : n.in) at.emplace_back(value(c));
  return gather(parameters_.operand(n.operand), at,
                {.mask = {}, .pad = n.pad ? constant_of(*n.pad) : Constant(0)});
}

std::optional<Tile> TileEvaluator::inside(uint64_t axes) {
  std::optional<Tile> all;
  for (int k = 0; k < static_cast<int>(block_.extents.size()); ++k) {
    const Expr& extent = l_.compute.axes[static_cast<size_t>(k)];
    if (!(axes >> k & 1) || divisor(extent, {}) % block_.extents[static_cast<size_t>(k)] == 0)
      continue;
    const Tile below = axis_index(k) < parameters_.index(extent);
    all.emplace(all ? *all & below : below);
  }
  return all;
}

}  // namespace tw::graph
