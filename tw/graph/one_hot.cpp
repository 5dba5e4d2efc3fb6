#include "tw/graph/one_hot.h"

#include <cmath>

#include "tw/graph/loops.h"

namespace tw::graph {

namespace {

/// The axis along which contents count 0, 1, 2, ..
std::optional<size_t> counting_axis(const TensorInfo& t) {
  if (!t.contents) return std::nullopt;
  for (size_t i = 0; i < t.contents->size(); ++i)
    if (!((*t.contents)[i] == Expr(static_cast<int64_t>(i)))) return std::nullopt;
  std::optional<size_t> axis;
  for (size_t k = 0; k < t.dims.size(); ++k) {
    if (t.dims[k] == Expr(1)) continue;
    if (axis) return std::nullopt;
    axis = k;
  }
  return axis;
}

/// The reduced axis that a term is, as a number of any type.
std::optional<int> counter_of(const Graph& g, const Compute& c, Term t) {
  while (t->kind == TermKind::cast && is_int(t->dtype)) t = t->in[0];
  if (t->kind == TermKind::load) {
    const TensorInfo& x = g.tensor(c.operands[static_cast<size_t>(t->operand)]);
    const std::optional<size_t> axis = counting_axis(x);
    if (!axis || t->pad) return std::nullopt;
    const Term at = t->in[*axis];
    const std::optional<int> k = counter_of(g, c, at);
    if (!k || !(c.axes[static_cast<size_t>(*k)] == x.dims[*axis])) return std::nullopt;
    return k;
  }
  const std::optional<int> k = axis_at(t);
  return k && *k >= c.rank ? k : std::nullopt;
}

/// x and k of a factor that is 1 where x == k, else 0.
struct OneHot {
  Term x;
  int k = 0;
};
std::optional<OneHot> one_hot(const Graph& g, const Compute& c, const Term& factor) {
  if (factor->kind != TermKind::cast) return std::nullopt;
  const TermNode& eq = *factor->in[0];
  if (eq.kind != TermKind::op || eq.code != Opcode::eq || !is_int(eq.in[0]->dtype))
    return std::nullopt;
  for (const int side : {0, 1}) {
    const Term &x = eq.in[static_cast<size_t>(side)], &y = eq.in[static_cast<size_t>(1 - side)];
    const std::optional<int> k = counter_of(g, c, y);
    if (k && !(axes_of(x) >> *k & 1)) return OneHot{x, *k};
  }
  return std::nullopt;
}

bool finite(const Tensor& t) {
  if (!is_float(t.dtype())) return true;
  for (double v : to_doubles(t))
    if (!std::isfinite(v)) return false;
  return true;
}

/// Whether a term is sure to be finite: a constant's element, maybe converted.
bool finite(const Graph& g, const Compute& c, const Term& t) {
  if (t->kind == TermKind::cast) return finite(g, c, t->in[0]);
  if (t->kind != TermKind::load) return false;
  const TensorInfo& x = g.tensor(c.operands[static_cast<size_t>(t->operand)]);
  return x.constant && finite(*x.constant);
}

}  // namespace

bool look_up_one_hot(const Graph& g, Compute& c) {
  if (c.fold != Fold::sum || c.body->kind != TermKind::op || c.body->code != Opcode::mul)
    return false;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const std::optional<OneHot> hot = one_hot(g, c, c.body->in[side]);
    const Term other = c.body->in[1 - side];
    if (!hot || !finite(g, c, other)) continue;
    const Term x = cast(hot->x, i64), extent = index(c.axes[static_cast<size_t>(hot->k)]);
    const Term inside =
        op(Opcode::and_, op(Opcode::le, constant_int(i64, 0), x), op(Opcode::lt, x, extent));
    std::vector<Term> axes(c.axes.size());
    axes[static_cast<size_t>(hot->k)] = x;
    c.body = where(inside, substitute(other, axes), constant(c.body->dtype, 0.0));
    drop_axis(c, hot->k, 0);
    if (c.reduced() > 0) return true;
    c.fold = Fold::none;
    if (!c.finish) return true;
    const Term sum = c.body;
    c.body = rewrite(c.finish, [&](const Term& t) -> Term {
      return t->kind == TermKind::result ? sum : nullptr;
    });
    c.finish = nullptr;
    return true;
  }
  return false;
}

}  // namespace tw::graph
