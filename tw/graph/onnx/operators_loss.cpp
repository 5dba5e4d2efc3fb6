#include <fmt/format.h>

#include "tw/graph/onnx/functions.h"
#include "tw/graph/onnx/operators.h"

namespace tw::graph::onnx {

namespace {

/// Where the labels name a class: all that are not ignored.
Term is_counted(Context& c, const Term& label) {
  if (!c.has_attribute("ignore_index")) return constant_int(b1, 1);
  return op(Opcode::ne, label, constant_int(i64, c.integer("ignore_index", 0)));
}

/// Minus the element of `scores` [N, C, ..] that each label names, times the weight of its class;
/// without scores, the weight alone.
TensorId labelled(Context& c, TensorId scores, bool weights_alone) {
  const std::vector<Expr> of = c.g.tensor(scores).dims;
  if (of.size() < 2) c.fail(fmt::format("has scores of {} axes, wanted 2 or more", of.size()));
  wants_rank(c, 1, static_cast<int>(of.size()) - 1);
  for (size_t k = 0; k + 1 < of.size(); ++k) wants_extent(c, 1, k, of[k == 0 ? 0 : k + 1]);
  if (c.has(2)) wants_rank(c, 2, 1);
  Compute made;
  made.operands = {c.in(1), scores};
  if (c.has(2)) made.operands.push_back(c.in(2));
  made.axes = c.info(1).dims;
  made.rank = static_cast<int>(made.axes.size());
  const DType t = c.g.tensor(scores).dtype;
  std::vector<Term> at = axis_terms(made.rank);
  const Term label = cast(load(0, c.dtype(1), at), i64), counted = is_counted(c, label);
  std::vector<Term> place = at;
  place.insert(place.begin() + 1, label);
  const Term weight = c.has(2) ? cast(load(2, c.dtype(2), {label}), t) : constant(t, 1.0);
  const Term loss = op(Opcode::neg, op(Opcode::mul, load(1, t, place), weight));
  made.body = where(counted, weights_alone ? weight : loss, constant(t, 0.0));
  return c.g.compute(std::move(made), c.name());
}

/// The loss of scores in f32 or wider, as the node reduces it.
TensorId reduced_loss(Context& c, TensorId scores) {
  const std::string how = c.text("reduction", "mean");
  const DType t = c.dtype(0);
  const TensorId each = labelled(c, scores, false);
  if (how == "none") return converted_to(c, each, t);
  if (how != "sum" && how != "mean") c.fail("reduces by '" + how + "', wanted none, sum or mean");
  const Reduction all{.axes = axes_from(0, c.rank(1)), .keep = false};
  const TensorId sum = reduce(c.g, c.name(), each, all);
  if (how == "sum") return converted_to(c, sum, t);
  const TensorId weights = reduce(c.g, c.name(), labelled(c, scores, true), all);
  return joined(c, sum, weights,
                [&](const Term& a, const Term& b) { return cast(op(Opcode::div, a, b), t); });
}

std::vector<TensorId> negative_log_likelihood_loss(Context& c) {
  return {reduced_loss(c, converted_to(c, c.in(0), computed_in(c.dtype(0))))};
}

std::vector<TensorId> softmax_cross_entropy_loss(Context& c) {
  const DType t = c.dtype(0);
  const TensorId scores = log_softmax_over(c, c.in(0), {1});
  return {reduced_loss(c, scores), converted_to(c, scores, t)};
}

}  // namespace

std::vector<Operator> loss_operators() {
  return {
      {"NegativeLogLikelihoodLoss", 12, kLatestOpset, negative_log_likelihood_loss},
      {"SoftmaxCrossEntropyLoss", 12, kLatestOpset, softmax_cross_entropy_loss},
  };
}

}  // namespace tw::graph::onnx
