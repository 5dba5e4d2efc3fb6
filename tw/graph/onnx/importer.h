#pragma once

#include <span>
#include <string>
#include <vector>

#include "tw/graph/build.h"
#include "tw/graph/onnx/model.h"

namespace tw::graph::onnx {

/// One node on its way into a graph. Accessors throw UserError naming the node, what is wrong, got
/// and wanted.
class Context {
 public:
  Context(Graph& graph, const Node& node, int64_t opset, std::vector<TensorId> inputs)
      : g(graph), node_(node), opset_(opset), inputs_(std::move(inputs)) {}

  Graph& g;

  const Node& node() const { return node_; }
  int64_t opset() const { return opset_; }
  std::string name() const;  ///< of the graph's nodes that this one becomes

  bool has(size_t input) const { return input < inputs_.size() && inputs_[input] >= 0; }
  TensorId in(size_t input) const;  ///< one that must be there
  size_t count() const { return inputs_.size(); }
  const TensorInfo& info(size_t input) const { return g.tensor(in(input)); }
  DType dtype(size_t input) const { return info(input).dtype; }
  int rank(size_t input) const { return static_cast<int>(info(input).dims.size()); }

  bool has_attribute(const std::string& name) const;
  int64_t integer(const std::string& name, int64_t otherwise) const;
  float real(const std::string& name, float otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  std::vector<int64_t> integers(const std::string& name) const;  ///< empty when absent
  std::vector<float> reals(const std::string& name) const;
  const Tensor& tensor(const std::string& name) const;

  /// Elements of a short integer input as expressions; NeedsSizes or UserError where data that is
  /// only known when it runs decides them.
  std::vector<Expr> contents(size_t input) const;
  /// The same as numbers.
  std::vector<int64_t> numbers(size_t input) const;
  /// Elements of a float or integer input that is constant.
  std::vector<double> values(size_t input) const;

  [[noreturn]] void fail(const std::string& what, const std::string& hint = "") const;
  /// UserError unless the dtype is among those.
  void wants(size_t input, std::span<const DType> types) const;

 private:
  const Node& node_;
  int64_t opset_;
  std::vector<TensorId> inputs_;
};

/// What an operator becomes: a tensor for each output of the node (those that it does not name may
/// be -1).
using Handler = std::vector<TensorId> (*)(Context&);
struct Operator {
  const char* name;
  int64_t since, until;  ///< opsets whose meaning the handler has
  Handler handler;
  const char* domain = "";
};

/// The tables of all families: operators_<family>.cpp.
const std::vector<Operator>& operators();
std::vector<Operator> pointwise_operators();
std::vector<Operator> shape_operators();
std::vector<Operator> reduce_operators();
std::vector<Operator> matmul_operators();
std::vector<Operator> gather_operators();
std::vector<Operator> window_operators();

/// Extents that replace named or unknown ones of an input.
using InputDims = std::map<std::string, std::vector<int64_t>>;

/// The graph of a model. Operators that are not supported are listed all at once, by name, node and
/// opset, in one UserError. Named extents become dims; with `dims` those inputs have numbers.
Graph import(const Model& m, const InputDims& dims = {});

}  // namespace tw::graph::onnx
