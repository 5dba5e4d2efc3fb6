#include "tw/graph/build.h"

#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"

namespace tw::graph {

namespace {

std::vector<Expr> axis_exprs(size_t count) {
  std::vector<Expr> axes;
  for (size_t k = 0; k < count; ++k) axes.push_back(Expr::symbol(axis_symbol(static_cast<int>(k))));
  return axes;
}

std::vector<Term> index_terms(const std::vector<Expr>& at) {
  std::vector<Term> terms;
  for (const Expr& e : at) terms.push_back(index(e));
  return terms;
}

bool is_one(const Expr& e) { return e == Expr(1); }

/// The coordinates along `from` of the element that lies at `at` of `to` in row-major order.
std::vector<Expr> unflattened(std::span<const Expr> from, std::span<const Expr> to,
                              std::span<const Expr> at) {
  if (from.size() == 1 && to.size() == 1) return {at[0]};
  Expr flat = 0;
  for (size_t k = 0; k < to.size(); ++k) flat = flat * to[k] + at[k];
  return unflatten(flat, from);
}

}  // namespace

int normal_axis(int64_t k, int rank, const std::string& what) {
  const int64_t axis = k < 0 ? k + rank : k;
  if (axis < 0 || axis >= rank)
    throw UserError(fmt::format("{} is {}, wanted -{} to {}", what, k, rank, rank - 1));
  return static_cast<int>(axis);
}

std::vector<Expr> broadcast_dims(Graph& g, std::span<const TensorId> xs, const std::string& what) {
  std::vector<Expr> dims;
  for (TensorId x : xs) {
    const std::vector<Expr>& more = g.tensor(x).dims;
    if (more.size() > dims.size()) dims.insert(dims.begin(), more.size() - dims.size(), Expr(1));
    for (size_t k = 0; k < more.size(); ++k) {
      Expr& d = dims[dims.size() - more.size() + k];
      const Expr& e = more[k];
      if (is_one(e)) continue;
      if (!is_one(d) && !g.same(d, e, what))
        throw UserError(fmt::format("{} broadcasts extents {} and {}, wanted equal ones or 1", what,
                                    g.text(d), g.text(e)));
      if (!d.is_constant() || is_one(d)) d = e;
    }
  }
  return dims;
}

TensorId pointwise(Graph& g, const std::string& name, std::span<const TensorId> xs,
                   const std::function<Term(std::span<const Term>)>& body) {
  Compute c;
  c.axes = broadcast_dims(g, xs, name);
  c.rank = static_cast<int>(c.axes.size());
  std::vector<int> where;  // of xs among the operands
  for (TensorId x : xs) where.push_back(c.operand(x));
  std::vector<Term> loads;
  for (size_t j = 0; j < c.operands.size(); ++j) {
    const TensorInfo& t = g.tensor(c.operands[j]);
    const int before = c.rank - static_cast<int>(t.dims.size());
    std::vector<Term> at;
    for (size_t k = 0; k < t.dims.size(); ++k)
      at.push_back(is_one(t.dims[k]) ? index(0) : axis(before + static_cast<int>(k)));
    loads.push_back(load(static_cast<int>(j), t.dtype, std::move(at)));
  }
  std::vector<Term> each;
  for (int j : where) each.push_back(loads[static_cast<size_t>(j)]);
  c.body = body(each);
  return g.compute(std::move(c), name);
}

TensorId view(Graph& g, const std::string& name, TensorId x, std::vector<Expr> dims,
              const std::function<std::vector<Expr>(std::span<const Expr>)>& coordinates,
              std::optional<Number> pad) {
  Compute c;
  c.operands = {x};
  c.axes = std::move(dims);
  c.rank = static_cast<int>(c.axes.size());
  std::vector<Expr> at = coordinates(axis_exprs(c.axes.size()));
  for (Expr& e : at) e = g.simple(e);
  c.body = load(0, g.tensor(x).dtype, index_terms(at), pad);
  return g.compute(std::move(c), name);
}

TensorId reshape(Graph& g, const std::string& name, TensorId x, std::vector<Expr> dims) {
  const std::vector<Expr> from = g.tensor(x).dims;
  const Expr before = product_of_dims(from), after = product_of_dims(dims);
  if (!g.same(before, after, name))
    throw UserError(fmt::format("{} makes {} elements of {}", name, g.text(g.simple(after)),
                                g.text(g.simple(before))));
  return view(g, name, x, dims, [&](std::span<const Expr> at) {
    // Groups of neighbouring axes with equal products are independent of each other.
    std::vector<Expr> coordinates;
    size_t i = 0, j = 0;
    while (i < from.size() || j < dims.size()) {
      const size_t i0 = i, j0 = j;
      Expr a = 1, b = 1;
      if (i < from.size()) a = from[i++];
      if (j < dims.size()) b = dims[j++];
      while (!(g.simple(a - b) == Expr(0)) && (i < from.size() || j < dims.size())) {
        const bool left = j == dims.size() ||
                          (i < from.size() &&
                           (!a.is_constant() || !b.is_constant() || a.constant() < b.constant()));
        if (left)
          a = g.simple(a * from[i++]);
        else
          b = g.simple(b * dims[j++]);
      }
      const std::span<const Expr> all(from), to(dims);
      for (Expr& e :
           unflattened(all.subspan(i0, i - i0), to.subspan(j0, j - j0), at.subspan(j0, j - j0)))
        coordinates.push_back(e);
    }
    return coordinates;
  });
}

TensorId transpose(Graph& g, const std::string& name, TensorId x, std::span<const int> perm) {
  const std::vector<Expr>& from = g.tensor(x).dims;
  std::vector<Expr> dims;
  for (int p : perm) dims.push_back(from[static_cast<size_t>(p)]);
  return view(g, name, x, dims, [&](std::span<const Expr> at) {
    std::vector<Expr> coordinates(from.size());
    for (size_t k = 0; k < perm.size(); ++k) coordinates[static_cast<size_t>(perm[k])] = at[k];
    return coordinates;
  });
}

TensorId expand(Graph& g, const std::string& name, TensorId x, std::vector<Expr> dims) {
  const std::vector<Expr> from = g.tensor(x).dims;
  if (from.size() > dims.size()) dims.insert(dims.begin(), from.size() - dims.size(), Expr(1));
  const size_t before = dims.size() - from.size();
  for (size_t k = 0; k < from.size(); ++k) {
    Expr& d = dims[before + k];
    if (is_one(d)) d = from[k];
    if (!is_one(from[k]) && !g.same(d, from[k], name))
      throw UserError(fmt::format("{} stretches an extent of {} to {}, wanted 1 or the same", name,
                                  g.text(from[k]), g.text(d)));
  }
  return view(g, name, x, dims, [&](std::span<const Expr> at) {
    std::vector<Expr> coordinates;
    for (size_t k = 0; k < from.size(); ++k)
      coordinates.push_back(is_one(from[k]) ? Expr(0) : at[before + k]);
    return coordinates;
  });
}

TensorId reduce(Graph& g, const std::string& name, TensorId x, const Reduction& r) {
  const TensorInfo& t = g.tensor(x);
  Compute c;
  c.operands = {x};
  std::vector<Expr> folded;
  std::vector<Term> at;
  const auto is_folded = [&](size_t k) {
    return std::find(r.axes.begin(), r.axes.end(), static_cast<int>(k)) != r.axes.end();
  };
  for (size_t k = 0; k < t.dims.size(); ++k) {
    if (!is_folded(k)) c.axes.push_back(t.dims[k]);
    if (is_folded(k) && r.keep) c.axes.emplace_back(1);
  }
  c.rank = static_cast<int>(c.axes.size());
  int next = 0;
  for (size_t k = 0; k < t.dims.size(); ++k) {
    if (is_folded(k)) {
      at.push_back(axis(c.rank + static_cast<int>(folded.size())));
      folded.push_back(t.dims[k]);
      if (r.keep) ++next;
    } else {
      at.push_back(axis(next++));
    }
  }
  c.axes.insert(c.axes.end(), folded.begin(), folded.end());
  c.fold = folded.empty() ? Fold::none : r.fold;
  const Term element = load(0, t.dtype, std::move(at));
  c.body = r.before ? r.before(element) : element;
  if (folded.empty()) {  // of one element each: argmax is 0
    Compute fold_of_one = c;
    fold_of_one.fold = r.fold;
    if (fold_of_one.folded_dtype() != c.body->dtype) c.body = constant_int(i64, 0);
    if (r.after) c.body = r.after(c.body);
  } else if (r.after) {
    c.finish = r.after(result(c.folded_dtype()));
  }
  return g.compute(std::move(c), name);
}

TensorId contract(Graph& g, const std::string& name, TensorId a, TensorId b, const Contraction& x) {
  Compute c;
  const int first = c.operand(a), second = c.operand(b);
  c.axes = x.result;
  c.rank = static_cast<int>(x.result.size());
  c.axes.insert(c.axes.end(), x.summed.begin(), x.summed.end());
  const DType t = g.tensor(a).dtype;
  DType sum = f32;
  if (t == f64 || (is_int(t) && bytes(t) >= 4)) sum = t;
  if (is_int(t) && bytes(t) < 4) sum = i32;
  const std::vector<Expr> axes = axis_exprs(c.axes.size());
  const auto factor = [&](int which, TensorId id, const std::vector<Expr>& at,
                          std::optional<Number> pad) {
    return cast(load(which, g.tensor(id).dtype, index_terms(at), pad), sum);
  };
  c.fold = Fold::sum;
  c.body = op(Opcode::mul, factor(first, a, x.a(axes), x.pad_a), factor(second, b, x.b(axes), {}));
  c.finish = x.after ? x.after(result(sum)) : cast(result(sum), t);
  if (c.finish->kind == TermKind::result) c.finish = nullptr;
  return g.compute(std::move(c), name);
}

}  // namespace tw::graph
