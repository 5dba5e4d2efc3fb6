#pragma once

#include <functional>
#include <span>

#include "tw/graph/graph.h"

// What frontends build graphs of: each function appends one computation (or none) and gives its
// result. `name` is what the source called the node.
namespace tw::graph {

/// The common shape of numpy's broadcasting. UserError naming `what` when there is none.
std::vector<Expr> broadcast_dims(Graph& g, std::span<const TensorId> xs, const std::string& what);

/// body of one element of each, after broadcasting.
TensorId pointwise(Graph& g, const std::string& name, std::span<const TensorId> xs,
                   const std::function<Term(std::span<const Term>)>& body);

/// Element (i, j, ..) of a tensor of `dims` is that of x at coordinates(i, j, ..). With `pad`,
/// coordinates may be outside.
TensorId view(Graph& g, const std::string& name, TensorId x, std::vector<Expr> dims,
              const std::function<std::vector<Expr>(std::span<const Expr>)>& coordinates,
              std::optional<Number> pad = {});
TensorId reshape(Graph& g, const std::string& name, TensorId x, std::vector<Expr> dims);
TensorId transpose(Graph& g, const std::string& name, TensorId x, std::span<const int> perm);
TensorId expand(Graph& g, const std::string& name, TensorId x, std::vector<Expr> dims);

/// Folds axes (ascending); they stay with extent 1 when `keep` is set. `before` maps an element of
/// x, `after` the folded value; null: as it is.
struct Reduction {
  Fold fold = Fold::sum;
  std::vector<int> axes = {};
  bool keep = true;
  std::function<Term(const Term&)> before = {};
  std::function<Term(const Term&)> after = {};
};
TensorId reduce(Graph& g, const std::string& name, TensorId x, const Reduction& r);

/// Sum over k of a times b, each with the coordinates that the axes of the result and k give it:
/// matrix products, convolutions. `result` are the extents of the result, `summed` those of k. The
/// sum is taken in f32 (f64 for f64, i32 and wider for integers); `after` maps it, null: a cast to
/// the dtype of a.
struct Contraction {
  std::vector<Expr> result, summed;
  std::function<std::vector<Expr>(std::span<const Expr>)> a, b;  ///< of result and summed axes
  std::optional<Number> pad_a = {};                              ///< a is read outside too
  std::function<Term(const Term&)> after = {};
};
TensorId contract(Graph& g, const std::string& name, TensorId a, TensorId b, const Contraction& c);

/// The axis k counts from the back when negative. UserError naming `what` when there is none.
int normal_axis(int64_t k, int rank, const std::string& what);

}  // namespace tw::graph
