#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tw/tensor/tensor.h"

namespace tw::graph::onnx {

/// An attribute of a node. Graph-valued ones are kept as their kind alone: no operator that is
/// supported has one.
struct Attribute {
  enum class Kind : uint8_t { integer, real, text, tensor, integers, reals, texts, other };
  Kind kind = Kind::other;
  std::vector<int64_t> integers;
  std::vector<float> reals;
  std::vector<std::string> texts;
  std::optional<Tensor> tensor;
  std::string refused;  ///< why there is no tensor: its elements are of a type that we lack
};

/// One operation of a model. Absent optional inputs and outputs have empty names.
struct Node {
  std::string op, domain, name;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Attribute> attributes;

  std::string title()
      const;  ///< "Conv 'block1/conv'" for messages; by its first output when unnamed
};

/// An extent is a number, a name, or neither.
using Extent = std::variant<std::monostate, int64_t, std::string>;
std::string to_string(const Extent& e);  ///< "?" for neither
struct ValueInfo {
  std::string name;
  DType dtype = f32;
  std::vector<Extent> dims;
  bool has_shape = false;
  std::string refused;  ///< why it cannot be a tensor of ours: "is a sequence"
};

/// What a model file says, checked and free of its encoding.
struct Model {
  std::string graph_name;
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;   ///< by domain; "" is ai.onnx
  std::vector<ValueInfo> inputs, outputs;  ///< inputs without those that initializers give
  std::map<std::string, Tensor> initializers;
  std::map<std::string, std::string> refused;  ///< initializers of types that we lack, and why
  std::vector<Node> nodes;
};

/// Reads a model. External data is mapped, and must lie in the model's folder. UserError for files
/// that are no model, cut, too large, or inconsistent: it names the node or tensor.
Model read_model(const std::string& path);
/// One TensorProto, as in .pb files of test data. `name` gets the tensor's.
Tensor read_tensor(const std::string& path, std::string* name = nullptr);

}  // namespace tw::graph::onnx
