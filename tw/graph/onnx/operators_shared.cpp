#include <fmt/format.h>
#include <numeric>

#include "tw/base/error.h"
#include "tw/graph/onnx/elements.h"
#include "tw/graph/onnx/functions.h"
#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

/// Factors of a product; constants apart.
void collect_factors(const Expr& e, std::vector<Expr>& factors, int64_t& constant) {
  if (e.is_constant()) {
    constant *= e.constant();
  } else if (e.kind() == Expr::Kind::mul) {
    collect_factors(e.lhs(), factors, constant);
    collect_factors(e.rhs(), factors, constant);
  } else {
    factors.push_back(e);
  }
}

}  // namespace

Number number_of(DType t, double v) {
  if (is_float(t)) return {false, 0, v};
  return {true, static_cast<int64_t>(v), v};
}

DType type_named(const Context& c, const char* attribute, DType otherwise) {
  if (!c.has_attribute(attribute)) return otherwise;
  const auto code = static_cast<int>(c.integer(attribute, 0));
  if (const std::string fault = type_fault(code); !fault.empty())
    c.fail(fmt::format("attribute '{}' {}", attribute, fault));
  return element_type(code);
}

void no_elements(const Context& c, size_t input) {
  c.fail(fmt::format("input {}, '{}', has no elements", input, c.info(input).name));
}

void wants_rank(const Context& c, size_t input, int rank) {
  if (c.rank(input) != rank)
    c.fail(fmt::format("input {}, '{}', has {} axes, wanted {}", input, c.info(input).name,
                       c.rank(input), rank));
}

void wants_extent(Context& c, size_t input, size_t axis, const Expr& extent) {
  const TensorInfo& t = c.info(input);
  if (!c.g.same(t.dims[axis], extent, c.name()))
    c.fail(fmt::format("input {}, '{}', has extent {} of axis {}, wanted {}", input, t.name,
                       c.g.text(t.dims[axis]), axis, c.g.text(c.g.simple(extent))));
}

std::vector<int> axes_from(int first, int rank) {
  std::vector<int> axes(static_cast<size_t>(std::max(rank - first, 0)));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

std::vector<int> named_axes(const Context& c, size_t input, const char* attribute, int rank) {
  std::vector<int64_t> given;
  if (c.has(input))
    given = c.numbers(input);
  else
    given = c.integers(attribute);
  std::vector<int> axes;
  for (int64_t a : given) axes.push_back(normal_axis(a, rank, "an axis of " + c.node().title()));
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) c.fail("names an axis twice");
  return axes;
}

int axis_attribute(const Context& c, int64_t otherwise, int rank) {
  return normal_axis(c.integer("axis", otherwise), rank, "axis of " + c.node().title());
}

Expr quotient_of_dims(const Graph& g, std::span<const Expr> of, std::span<const Expr> by) {
  std::vector<Expr> above, below;
  int64_t a = 1, b = 1;
  for (const Expr& e : of) collect_factors(g.simple(e), above, a);
  for (const Expr& e : by) collect_factors(g.simple(e), below, b);
  std::erase_if(below, [&](const Expr& e) {
    const auto at = std::find(above.begin(), above.end(), e);
    if (at == above.end()) return false;
    above.erase(at);
    return true;
  });
  const int64_t shared = b == 0 ? 1 : std::gcd(a, b);
  if (shared > 1) a /= shared, b /= shared;
  const Expr left = product_of_dims(above) * Expr(a);
  if (below.empty() && b == 1) return g.simple(left);
  return g.simple(floordiv(left, product_of_dims(below) * Expr(b)));
}

Expr count_along(const Graph& g, TensorId x, std::span<const int> axes) {
  std::vector<Expr> dims;
  for (int a : axes) dims.push_back(g.tensor(x).dims[static_cast<size_t>(a)]);
  return g.simple(product_of_dims(dims));
}

std::vector<TensorId> all_inputs(const Context& c) {
  std::vector<TensorId> all;
  for (size_t i = 0; i < c.count(); ++i) all.push_back(c.in(i));
  if (all.empty()) c.fail("has no input");
  return all;
}

TensorId mapped(Context& c, TensorId x, const std::function<Term(const Term&)>& body) {
  return pointwise(c.g, c.name(), std::vector{x},
                   [&](std::span<const Term> e) { return body(e[0]); });
}

TensorId joined(Context& c, TensorId a, TensorId b,
                const std::function<Term(const Term&, const Term&)>& body) {
  return pointwise(c.g, c.name(), std::vector{a, b},
                   [&](std::span<const Term> e) { return body(e[0], e[1]); });
}

TensorId filled(Context& c, std::vector<Expr> dims, const Term& body) {
  Compute made;
  made.rank = static_cast<int>(dims.size());
  made.axes = std::move(dims);
  made.body = body;
  return c.g.compute(std::move(made), c.name());
}

TensorId converted_to(Context& c, TensorId x, DType t) {
  if (c.g.tensor(x).dtype == t) return x;
  return mapped(c, x, [&](const Term& e) { return cast(e, t); });
}

TensorId along_channels(Context& c, TensorId x, int rank) {
  const TensorInfo& channels = c.g.tensor(x);
  if (channels.dims.size() != 1)
    c.fail(fmt::format("'{}' has {} axes, wanted 1", channels.name, channels.dims.size()));
  std::vector<Expr> dims(static_cast<size_t>(std::max(rank - 1, 1)), Expr(1));
  dims[0] = channels.dims[0];
  return reshape(c.g, c.name(), x, std::move(dims));
}

Term cast_saturating(const Term& x, DType t) {
  const double most = largest(t);
  return cast(op(Opcode::min, op(Opcode::max, x, real(x, -most)), real(x, most)), t);
}

Term root_or_power(const Term& x, double y) {
  if (y == 1) return x;
  if (y == 2) return op(Opcode::mul, x, x);
  if (y == 0.5) return op(Opcode::sqrt, x);
  return cast(power(cast(x, f64), constant(f64, y)), x->dtype);
}

Term counted_from_back(const Term& i, const Expr& n) {
  const Term wide = cast(i, i64);
  const Term below = op(Opcode::lt, wide, constant_int(i64, 0));
  return where(below, op(Opcode::add, wide, index(n)), wide);
}

bool names_output(const Context& c, size_t k) {
  return k < c.node().outputs.size() && !c.node().outputs[k].empty();
}

}  // namespace tw::graph::onnx
