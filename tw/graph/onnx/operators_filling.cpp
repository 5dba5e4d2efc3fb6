#include <cmath>
#include <cstring>
#include <fmt/format.h>

#include "tw/graph/onnx/functions.h"
#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

/// A tensor of numbers that an attribute lists.
template <class T>
Tensor tensor_of_numbers(DType t, const std::vector<T>& values, bool scalar) {
  std::vector<int64_t> dims;
  if (!scalar) dims = {static_cast<int64_t>(values.size())};
  Tensor x = host_tensor(t, dims);
  if (!values.empty()) std::memcpy(x.view().data, values.data(), values.size() * sizeof(T));
  return x;
}

std::vector<TensorId> constant_of_node(Context& c) {
  const std::string name = c.name();
  if (c.has_attribute("value")) return {c.g.constant(name, c.tensor("value"))};
  if (c.has_attribute("value_float"))
    return {c.g.constant(name, tensor_of_numbers<float>(f32, {c.real("value_float", 0)}, true))};
  if (c.has_attribute("value_floats"))
    return {c.g.constant(name, tensor_of_numbers(f32, c.reals("value_floats"), false))};
  if (c.has_attribute("value_int"))
    return {c.g.constant(name, tensor_of_numbers<int64_t>(i64, {c.integer("value_int", 0)}, true))};
  if (c.has_attribute("value_ints"))
    return {c.g.constant(name, tensor_of_numbers(i64, c.integers("value_ints"), false))};
  c.fail("gives no tensor and no numbers", "strings and sparse tensors are not supported");
}

/// One element as a constant.
Term first_element(const Context& c, const Tensor& x) {
  if (x.count() == 0) c.fail("gives no element");
  const DType t = x.dtype();
  if (is_float(t)) return constant(t, get(x.view(), 0));
  const uint64_t raw = load_bits(t, x.view().data, 0);
  const int64_t shift = 64 - bits(t);
  const auto v = static_cast<int64_t>(raw << shift);
  return constant_int(t, is_signed_int(t) ? v >> shift : static_cast<int64_t>(raw));
}

std::vector<TensorId> constant_of_shape(Context& c) {
  const Term value =
      c.has_attribute("value") ? first_element(c, c.tensor("value")) : constant(f32, 0.0);
  return {filled(c, c.contents(0), value)};
}

/// A number of elements that is computed as a float.
int64_t count_of(const Context& c, double count) {
  if (!(count >= 0 && count <= static_cast<double>(Graph::kLargestDim)))
    c.fail(fmt::format("makes {} elements, wanted 0 to {}", count, Graph::kLargestDim));
  return static_cast<int64_t>(count);
}

/// Floats are given by constants, because an extent depends on them.
std::vector<TensorId> float_range(Context& c) {
  const DType t = c.dtype(0);
  const auto given = [&](size_t input) { return first_of(c, input, c.values(input)); };
  const double start = given(0), limit = given(1), delta = given(2);
  const int64_t n = count_of(c, std::max(std::ceil((limit - start) / delta), 0.0));
  const Term i = cast(axis(0), f64);
  const Term steps = op(Opcode::mul, i, constant(f64, delta));
  return {filled(c, {n}, cast(op(Opcode::add, steps, constant(f64, start)), t))};
}

std::vector<TensorId> range_of(Context& c) {
  if (is_float(c.dtype(0))) return float_range(c);
  const Expr start = first_of(c, 0, c.contents(0)), limit = first_of(c, 1, c.contents(1));
  const int64_t delta = first_of(c, 2, c.numbers(2));
  if (delta == 0) c.fail("has a step of 0");
  const Expr length = delta > 0 ? limit - start : start - limit;
  const Expr n = c.g.simple(max(cdiv(length, std::abs(delta)), Expr(0)));
  const Expr element = Expr::symbol(axis_symbol(0)) * Expr(delta) + start;
  return {filled(c, {n}, cast(index(element), c.dtype(0)))};
}

std::vector<TensorId> eye_like(Context& c) {
  if (c.rank(0) != 2) c.fail("wants two axes");
  const DType t = type_named(c, "dtype", c.dtype(0));
  const Term diagonal = index(Expr::symbol(axis_symbol(0)) + Expr(c.integer("k", 0)));
  return {filled(c, c.info(0).dims, cast(op(Opcode::eq, axis(1), diagonal), t))};
}

std::vector<TensorId> trilu(Context& c) {
  const int rank = c.rank(0);
  if (rank < 2) c.fail("wants two axes or more");
  const bool upper = c.integer("upper", 1) != 0;
  const Expr k = c.has(1) ? first_of(c, 1, c.contents(1)) : Expr(0);
  const Term row = index(Expr::symbol(axis_symbol(rank - 2)) + k), column = axis(rank - 1);
  return {mapped(c, c.in(0), [&](const Term& x) {
    const Term keep = upper ? op(Opcode::le, row, column) : op(Opcode::le, column, row);
    return where(keep, x, real(x, 0));
  })};
}

std::vector<TensorId> one_hot(Context& c) {
  const int rank = c.rank(0) + 1;
  const int axis = axis_attribute(c, -1, rank);
  const DType given = c.dtype(1);
  const Expr depth = is_float(given) ? Expr(count_of(c, first_of(c, 1, c.values(1))))
                                     : first_of(c, 1, c.contents(1));
  wants_rank(c, 2, 1);
  wants_extent(c, 2, 0, 2);
  Compute made;
  made.operands = {c.in(0)};
  const int values = made.operand(c.in(2));
  made.axes = c.info(0).dims;
  made.axes.insert(made.axes.begin() + axis, depth);
  made.rank = rank;
  std::vector<Term> at;
  for (int k = 0; k < rank; ++k)
    if (k != axis) at.push_back(tw::graph::axis(k));
  const Term counted = counted_from_back(load(0, c.dtype(0), at), depth);
  const DType t = c.dtype(2);
  made.body = where(op(Opcode::eq, counted, tw::graph::axis(axis)), load(values, t, {index(1)}),
                    load(values, t, {index(0)}));
  return {c.g.compute(std::move(made), c.name())};
}

}  // namespace

std::vector<Operator> filling_operators() {
  const int64_t n = kLatestOpset;
  return {
      {"Constant", 1, n, constant_of_node}, {"ConstantOfShape", 9, n, constant_of_shape},
      {"EyeLike", 9, n, eye_like},          {"OneHot", 9, n, one_hot},
      {"Range", 11, n, range_of},           {"Trilu", 14, n, trilu},
  };
}

}  // namespace tw::graph::onnx
