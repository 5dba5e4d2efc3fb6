#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tw/graph/plan.h"
#include "tw/runtime/device.h"

namespace tw::graph {

struct SessionOptions {
  int threads = 0;           ///< most threads of a launch; 0: all of the pool
  int64_t memory_limit = 0;  ///< bytes a run may take beside its inputs; 0: what the machine has
  Device device = Device::open("cpu:0");
};

/// An input or output of a model. Extents are numbers, names or expressions of names; "?" is one
/// that the model does not say, ".." any number of them.
struct Port {
  std::string name;
  DType dtype = f32;
  std::vector<std::string> dims;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// A model that is ready to run. Kernels are made for any extents where the model allows it;
/// otherwise for the extents of a call, of which the last few are kept. Calls from many threads may
/// run at once.
class Session {
 public:
  using Dims = std::map<std::string, std::vector<int64_t>>;

  /// UserError for files that are no model, or one of operators that we lack.
  static Session load(const std::string& path, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;

  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;

  /// The outputs, in the model's order. UserError for inputs that are missing, unknown, or of other
  /// types or extents, and where memory would not do.
  std::vector<NamedTensor> run(const std::map<std::string, TensorView>& inputs) const;
  /// Compiles what calls of these extents need; otherwise the first call does.
  void prepare(const Dims& dims) const;

  /// The plan for inputs of these extents, and their sizes for its functions.
  struct Prepared {
    std::shared_ptr<const Plan> plan;
    std::vector<int64_t> sizes;
  };
  Prepared plan(const Dims& dims) const;
  /// The plan for any extents; null where the model does not allow one, see why_sizes().
  std::shared_ptr<const Plan> general_plan() const;
  const std::string& why_sizes() const;

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tw::graph
