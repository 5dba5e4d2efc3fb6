#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tw/graph/graph.h"
#include "tw/jit/kernel.h"

namespace tw::graph {

struct PlanOptions {
  int threads = 0;           ///< most threads of a launch; 0: the pool's
  int64_t memory_limit = 0;  ///< bytes that results and what is between them may take; 0: what the
                             ///< machine has
};

/// What a step of a plan is, for those who look.
struct StepInfo {
  std::string name;            ///< of the node
  std::string program;         ///< its tile program's name: product, fold or elements
  std::string text;            ///< the node in index notation
  const Node* node = nullptr;  ///< of the plan's graph
};

/// What a step moves and computes: its operands and its result once each; one for each op of an
/// element, so that a multiply-add counts two.
struct StepWork {
  int64_t bytes = 0;
  double flops = 0;
};

/// A graph made ready for a device: one launch a node, in order. Immutable or locked inside; calls
/// from many threads are safe.
class Plan {
 public:
  /// Throws what tracing and compiling throw.
  Plan(Graph g, const Device& device, const PlanOptions& options = {});
  ~Plan();
  Plan(Plan&&) noexcept;

  const Graph& graph() const;
  std::vector<StepInfo> steps() const;

  /// The sizes of dims that inputs of these extents have. UserError naming the input, got and
  /// wanted; NeedsSizes where the graph was built for other cases.
  std::vector<int64_t> sizes(const std::vector<std::vector<int64_t>>& input_dims) const;
  std::vector<std::vector<int64_t>> output_dims(const std::vector<int64_t>& sizes) const;
  /// Bytes between inputs and outputs at those sizes.
  int64_t workspace(const std::vector<int64_t>& sizes) const;
  /// Of each step at those sizes.
  std::vector<StepWork> work(const std::vector<int64_t>& sizes) const;
  /// Compiles what calls of those sizes need; otherwise the first call does.
  void prepare(const std::vector<int64_t>& sizes) const;

  /// Runs on tensors in the order of the graph's inputs; gives its outputs.
  std::vector<Tensor> run(const std::vector<TensorView>& inputs) const;
  /// Into tensors of the caller: contiguous, of output_dims(), overlapping nothing. `done` hears
  /// the number of each step when it has run.
  void run(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
           const std::function<void(size_t)>& done = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tw::graph
