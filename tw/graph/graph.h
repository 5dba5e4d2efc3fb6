#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tw/base/error.h"
#include "tw/graph/term.h"
#include "tw/math/facts.h"
#include "tw/tensor/tensor.h"

namespace tw::graph {

/// Index into Graph::tensors().
using TensorId = int;

/// How a computation folds its reduced axes. argmax and argmin give the i64 index along the one
/// reduced axis (ties: the lowest; NaN counts as the extreme), last_argmax and last_argmin the
/// highest of equal ones.
enum class Fold : uint8_t { none, sum, prod, min, max, argmax, argmin, last_argmax, last_argmin };
const char* name(Fold f);
bool finds_place(Fold f);  ///< gives where, not what

/// A tensor in index notation: element (i, j, ..) is finish(fold over the other axes of body). The
/// meaning of every node of a graph; fusion puts computations into each other.
struct Compute {
  std::vector<TensorId> operands;
  std::vector<Expr> axes;  ///< extents over dims: those of the result, then the reduced ones
  int rank = 0;            ///< how many axes the result has
  Fold fold = Fold::none;
  Term body;
  Term finish;  ///< of result() and the result's axes; null: what the fold gives

  DType folded_dtype() const;  ///< of the fold
  DType dtype() const;         ///< of the result's elements
  int reduced() const { return static_cast<int>(axes.size()) - rank; }

  /// Which operand the tensor is; it becomes one where it is none yet.
  int operand(TensorId t);
  /// Both terms rewritten, and every node of both.
  void rewrite_terms(const Change& change);
  void substitute_axes(const std::vector<Term>& axes);  ///< as substitute() does
  void for_each_term(const std::function<void(const TermNode&)>& visit) const;
};

struct Node {
  Compute compute;
  TensorId out = 0;
  std::string name;  ///< what its source called it
};

/// A value of the graph.
struct TensorInfo {
  std::string name;
  DType dtype = f32;
  std::vector<Expr> dims = {};          ///< over the graph's dims
  std::optional<Tensor> constant = {};  ///< its elements, when they are given with the graph
  std::optional<std::vector<Expr>> contents =
      {};             ///< elements in row-major order, of short integer
                      ///< tensors whose elements the dims determine
  int producer = -1;  ///< the node, -1: an input or a constant
};

/// Two expressions that must be equal when the dims are known, else the graph does not apply.
struct Requirement {
  Expr a, b;
  std::string what;
};

/// Tensors and how each is computed, in an order in which operands come first. Dims are named
/// integers, known when it runs.
class Graph {
 public:
  /// Dims are taken to be at most this: what a slice to "the end" is cut to. Larger ones need
  /// numbers.
  static constexpr int64_t kLargestDim = 1'000'000'000;

  explicit Graph(std::string name) : name_(std::move(name)) {}

  /// The dim of that name; a new one where there is none.
  Expr dim(const std::string& name);
  TensorId input(const std::string& name, DType t, std::vector<Expr> dims);
  TensorId constant(const std::string& name, Tensor value);
  /// A short integer tensor whose elements follow from the dims; of one axis, or of those extents.
  TensorId shape_value(const std::string& name, DType t, std::vector<Expr> elements,
                       std::optional<std::vector<Expr>> dims = {});
  /// The result of a computation. Elements that follow from the dims are found at once. UserError
  /// naming it where an extent is negative whatever the dims are.
  TensorId compute(Compute c, const std::string& name);
  void output(const std::string& name, TensorId t);
  /// Other nodes that make the outputs.
  void replace_nodes(std::vector<Node> nodes);

  /// Simplified under what is known of dims.
  Expr simple(const Expr& e) const;
  /// Whether a equals b: true or false where that is sure; otherwise it becomes a requirement and
  /// the answer is true.
  bool same(const Expr& a, const Expr& b, const std::string& what);
  /// The number that e is where dims have those sizes.
  static int64_t value(const Expr& e, const std::vector<int64_t>& sizes);
  /// The number that e is; throws NeedsSizes where dims decide.
  int64_t number(const Expr& e, const std::string& what) const;

  const std::string& name() const { return name_; }
  const std::vector<std::string>& dim_names() const { return dim_names_; }
  std::string text(const Expr& e) const;
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo& tensor(TensorId t) const { return tensors_.at(static_cast<size_t>(t)); }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<TensorId>& inputs() const { return inputs_; }
  const std::vector<std::pair<std::string, TensorId>>& outputs() const { return outputs_; }
  const std::vector<Requirement>& requirements() const { return requirements_; }

 private:
  TensorId add(TensorInfo t);
  Facts facts() const;

  std::string name_;
  std::vector<std::string> dim_names_;
  std::vector<TensorInfo> tensors_;
  std::vector<Node> nodes_;
  std::vector<TensorId> inputs_;
  std::vector<std::pair<std::string, TensorId>> outputs_;
  std::vector<Requirement> requirements_;
};

/// A graph with named dims cannot be built: what a node is depends on a size. With numbers for the
/// input's dims it can.
class NeedsSizes : public UserError {
 public:
  using UserError::UserError;
};

/// Faults of a graph, one a line; "" when it is sound: operands come before their use, loads have
/// as many coordinates as their operand has axes and its dtype, coordinates without pad are inside
/// where that can be told, dtypes of terms agree, extents are those of the result.
std::string verify(const Graph& g);

/// A line a tensor, as in docs/graph.md. Elements of constants are not part of it.
std::string to_string(const Graph& g);
std::string to_string(const Graph& g, const Node& n);

/// The graph that to_string() wrote. `constant` gives the elements of a constant by its name;
/// without it they are zeros. UserError with the line for other text.
using ConstantOf =
    std::function<Tensor(const std::string& name, DType t, const std::vector<int64_t>& dims)>;
Graph parse_graph(const std::string& text, const ConstantOf& constant = {});

}  // namespace tw::graph
