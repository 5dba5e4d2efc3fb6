#include <fmt/format.h>

#include "tw/graph/onnx/functions.h"
#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

using Exprs = std::vector<Expr>;

/// A product of stacks of matrices, as numpy multiplies them.
struct StackedProduct {
  Exprs batch;                       // broadcast
  Exprs a, b;                        // extents of the operands
  bool row = false, column = false;  // whether a is a row, b a column
  Contraction c;

  Exprs coordinates(const Exprs& dims, std::span<const Expr> at, const Exprs& last) const {
    Exprs all;
    const size_t stacked = dims.size() - last.size();
    for (size_t k = 0; k < stacked; ++k)
      all.push_back(dims[k] == Expr(1) ? Expr(0) : at[batch.size() - stacked + k]);
    all.insert(all.end(), last.begin(), last.end());
    return all;
  }
};

Exprs stacked_dims(const Exprs& dims) {
  return dims.size() <= 2 ? Exprs{} : Exprs(dims.begin(), dims.end() - 2);
}

/// The common extents of stacks.
Exprs broadcast_stacks(Context& c, const Exprs& a, const Exprs& b) {
  Exprs all(std::max(a.size(), b.size()), Expr(1));
  for (const Exprs* dims : {&a, &b})
    for (size_t k = 0; k < dims->size(); ++k) {
      Expr& d = all[all.size() - dims->size() + k];
      const Expr& e = (*dims)[k];
      if (e == Expr(1)) continue;
      if (!(d == Expr(1)) && !c.g.same(d, e, c.name()))
        c.fail(fmt::format("multiplies stacks of {} and {}", c.g.text(d), c.g.text(e)));
      if (d == Expr(1) || e.is_constant()) d = e;
    }
  return all;
}

StackedProduct stacked_product(Context& c, TensorId a, TensorId b) {
  StackedProduct p;
  p.a = c.g.tensor(a).dims;
  p.b = c.g.tensor(b).dims;
  if (p.a.empty() || p.b.empty()) c.fail("multiplies a scalar");
  p.row = p.a.size() == 1;
  p.column = p.b.size() == 1;
  p.batch = broadcast_stacks(c, stacked_dims(p.a), stacked_dims(p.b));
  const Expr k = p.a.back(), also = p.column ? p.b[0] : p.b[p.b.size() - 2];
  if (!c.g.same(k, also, c.name()))
    c.fail(fmt::format("sums over {} and {}", c.g.text(k), c.g.text(also)));
  p.c.result = p.batch;
  if (!p.row) p.c.result.push_back(p.a[p.a.size() - 2]);
  if (!p.column) p.c.result.push_back(p.b.back());
  p.c.summed = {k.is_constant() ? k : also};
  return p;
}

/// The product; `after` as in Contraction.
TensorId multiplied(Context& c, TensorId a, TensorId b,
                    const std::function<Term(const Term&)>& after = {}) {
  const StackedProduct p = stacked_product(c, a, b);
  Contraction x = p.c;
  const size_t m = p.batch.size();
  x.a = [&](std::span<const Expr> at) {
    return p.coordinates(p.a, at, p.row ? Exprs{at.back()} : Exprs{at[m], at.back()});
  };
  x.b = [&](std::span<const Expr> at) {
    return p.coordinates(p.b, at,
                         p.column ? Exprs{at.back()} : Exprs{at.back(), at[at.size() - 2]});
  };
  x.after = after;
  return contract(c.g, c.name(), a, b, x);
}

std::vector<TensorId> matmul(Context& c) { return {multiplied(c, c.in(0), c.in(1))}; }

std::vector<TensorId> gemm(Context& c) {
  const bool across_a = c.integer("transA", 0) != 0, across_b = c.integer("transB", 0) != 0;
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  if (c.rank(0) != 2 || c.rank(1) != 2) c.fail("wants matrices");
  const Exprs a = c.info(0).dims, b = c.info(1).dims;
  const Expr k = a[across_a ? 0 : 1], also = b[across_b ? 1 : 0];
  if (!c.g.same(k, also, c.name()))
    c.fail(fmt::format("sums over {} and {}", c.g.text(k), c.g.text(also)));
  Contraction x;
  x.result = {a[across_a ? 1 : 0], b[across_b ? 0 : 1]};
  x.summed = {k.is_constant() ? k : also};
  x.a = [&](std::span<const Expr> i) { return across_a ? Exprs{i[2], i[0]} : Exprs{i[0], i[2]}; };
  x.b = [&](std::span<const Expr> i) { return across_b ? Exprs{i[1], i[2]} : Exprs{i[2], i[1]}; };
  const bool adds = c.has(2) && beta != 0;
  const DType t = c.dtype(0);
  x.after = [&](const Term& sum) {
    const Term s = alpha == 1 ? sum : op(Opcode::mul, sum, real(sum, alpha));
    return adds ? s : cast(s, t);
  };
  const TensorId product = contract(c.g, c.name(), c.in(0), c.in(1), x);
  if (!adds) return {product};
  return {joined(c, product, c.in(2), [&](const Term& p, const Term& e) {
    const Term wide = cast(e, p->dtype);
    return cast(op(Opcode::add, p, beta == 1 ? wide : op(Opcode::mul, wide, real(wide, beta))), t);
  })};
}

/// A zero point as i32 that broadcasts over the product: of rows [M] stands in a column.
TensorId zero_point(Context& c, size_t input, bool of_rows) {
  const TensorId z = converted_to(c, c.in(input), i32);
  Exprs dims = c.g.tensor(z).dims;
  if (dims.size() == 1 && of_rows && !(dims[0] == Expr(1))) {
    dims.emplace_back(1);
    return reshape(c.g, c.name(), z, dims);
  }
  return dims.size() == 1 && dims[0] == Expr(1) ? reshape(c.g, c.name(), z, {}) : z;
}

/// Sums of an operand of a product over what the product sums, beside its result.
TensorId sums_of(Context& c, size_t input) {
  const int rank = c.rank(input);
  Reduction r{.axes = {input == 0 ? rank - 1 : rank - 2}};
  r.before = [](const Term& e) { return cast(e, i32); };
  return reduce(c.g, c.name(), c.in(input), r);
}

/// (a - z) (b - w) is summed as ab - z b - w a + k z w, which wraps to the same.
std::vector<TensorId> matmul_integer(Context& c) {
  TensorId y = multiplied(c, c.in(0), c.in(1), [](const Term& s) { return s; });
  if (!c.has(2) && !c.has(3)) return {y};
  if (c.rank(0) < 2 || c.rank(1) < 2) c.fail("has zero points of vectors");
  const auto minus_product = [](const Term& a, const Term& b) { return op(Opcode::mul, a, b); };
  const auto subtract = [](const Term& a, const Term& b) { return op(Opcode::sub, a, b); };
  const auto less = [&](TensorId from, TensorId a, TensorId b) {
    return joined(c, from, joined(c, a, b, minus_product), subtract);
  };
  if (c.has(2)) y = less(y, zero_point(c, 2, true), sums_of(c, 1));
  if (c.has(3)) {
    TensorId rows = sums_of(c, 0);
    if (c.has(2)) {  // a less its zero point, summed
      const Term k = cast(index(c.info(0).dims.back()), i32);
      const TensorId all =
          mapped(c, zero_point(c, 2, true), [&](const Term& z) { return op(Opcode::mul, z, k); });
      rows = joined(c, rows, all, subtract);
    }
    y = less(y, rows, zero_point(c, 3, false));
  }
  return {y};
}

}  // namespace

std::vector<Operator> matmul_operators() {
  const int64_t n = kLatestOpset;
  std::vector<Operator> all = {
      {"Gemm", 7, n, gemm},
      {"MatMul", 1, n, matmul},
      {"MatMulInteger", 10, n, matmul_integer},
  };
  for (const Operator& o : einsum_operators()) all.push_back(o);
  return all;
}

}  // namespace tw::graph::onnx
