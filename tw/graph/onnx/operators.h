#pragma once

#include <algorithm>

#include "tw/graph/onnx/importer.h"

// What handlers of operators share.
namespace tw::graph::onnx {

/// The newest opset whose meanings were read.
inline constexpr int64_t kLatestOpset = 28;

Number number_of(DType t, double v);
[[noreturn]] void no_elements(const Context& c, size_t input);
/// The element type that an attribute names.
DType type_named(const Context& c, const char* attribute, DType otherwise);

/// In what a sum of elements is accumulated: f32 for narrower floats.
inline DType accumulator(DType t) { return t == f16 || t == bf16 ? f32 : t; }
/// In what functions of elements are computed: f32 for narrower floats, f64 for integers.
inline DType computed_in(DType t) {
  if (t == f16 || t == bf16) return f32;
  return is_float(t) ? t : f64;
}

/// UserError unless the input has so many axes.
void wants_rank(const Context& c, size_t input, int rank);
/// UserError unless an axis of the input has that extent; where dims decide, the graph requires it.
void wants_extent(Context& c, size_t input, size_t axis, const Expr& extent);

/// The first of an input's elements, which has some.
template <class T>
const T& first_of(const Context& c, size_t input, const std::vector<T>& elements) {
  if (elements.empty()) no_elements(c, input);
  return elements[0];
}

/// Axes that the node names in an input or in an attribute of older opsets, counted from the front
/// and in ascending order. Empty when it names none.
std::vector<int> named_axes(const Context& c, size_t input, const char* attribute, int rank);
int axis_attribute(const Context& c, int64_t otherwise, int rank);
std::vector<int> axes_from(int first, int rank);

/// How many elements lie along axes.
Expr count_along(const Graph& g, TensorId x, std::span<const int> axes);
/// The quotient of two products; equal factors go.
Expr quotient_of_dims(const Graph& g, std::span<const Expr> of, std::span<const Expr> by);

/// All inputs, of which there is one or more.
std::vector<TensorId> all_inputs(const Context& c);

/// One operand with a body.
TensorId mapped(Context& c, TensorId x, const std::function<Term(const Term&)>& body);
/// Two, after broadcasting.
TensorId joined(Context& c, TensorId a, TensorId b,
                const std::function<Term(const Term&, const Term&)>& body);
/// Elements that no tensor gives.
TensorId filled(Context& c, std::vector<Expr> dims, const Term& body);
TensorId converted_to(Context& c, TensorId x, DType t);
/// A tensor of one axis, as axis 1 of tensors of that rank.
TensorId along_channels(Context& c, TensorId x, int rank);
/// x - log(sum of e^x), in f32 or wider.
TensorId log_softmax_over(Context& c, TensorId x, const std::vector<int>& axes);
/// Cut to the range of t, then converted.
Term cast_saturating(const Term& x, DType t);
/// x^y of x >= 0, by shorter ways where there is one.
Term root_or_power(const Term& x, double y);
/// An index that may count from the back, of an axis of n elements.
Term counted_from_back(const Term& i, const Expr& n);
bool names_output(const Context& c, size_t k);

/// Parts of families' tables that have files of their own.
std::vector<Operator> convolution_operators();
std::vector<Operator> dropout_operators();
std::vector<Operator> einsum_operators();
std::vector<Operator> filling_operators();
std::vector<Operator> loss_operators();
std::vector<Operator> normalize_operators();
std::vector<Operator> order_operators();
std::vector<Operator> padding_operators();
std::vector<Operator> quantize_operators();
std::vector<Operator> resize_operators();
std::vector<Operator> scatter_operators();

}  // namespace tw::graph::onnx
