#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tw/graph/fuse.h"
#include "tw/graph/onnx/model.h"
#include "tw/graph/plan.h"
#include "tw/runtime/device.h"

// Models as files give them, without a file, and a run of their graphs.
namespace tw::graph::onnx {

using Dims = std::vector<int64_t>;
using Names = std::vector<std::string>;

inline Tensor list_of(const std::vector<int64_t>& values) {
  Tensor t = host_tensor(i64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t;
}

inline Tensor floats_of(const Dims& dims, const std::vector<float>& values) {
  Tensor t = host_tensor(f32, dims);
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}

inline Attribute attribute(int64_t v) {
  Attribute a;
  a.kind = Attribute::Kind::integer;
  a.integers = {v};
  return a;
}

inline Attribute attribute(const std::vector<int64_t>& v) {
  Attribute a;
  a.kind = Attribute::Kind::integers;
  a.integers = v;
  return a;
}

inline Attribute attribute_of_real(float v) {
  Attribute a;
  a.kind = Attribute::Kind::real;
  a.reals = {v};
  return a;
}

/// A model written node by node.
struct Written {
  Model m;
  explicit Written(int64_t opset = 18) { m.opsets[""] = opset; }

  void input(const std::string& name, DType t, const std::vector<Extent>& dims) {
    ValueInfo v;
    v.name = name;
    v.dtype = t;
    v.dims = dims;
    v.has_shape = true;
    m.inputs.push_back(v);
  }
  void list(const std::string& name, const std::vector<int64_t>& v) {
    m.initializers[name] = list_of(v);
  }
  void node(const std::string& op, const Names& inputs, const Names& outputs,
            const std::map<std::string, Attribute>& attributes = {}) {
    Node n;
    n.op = op;
    n.inputs = inputs;
    n.outputs = outputs;
    n.attributes = attributes;
    m.nodes.push_back(n);
  }
  void output(const std::string& name) {
    ValueInfo v;
    v.name = name;
    m.outputs.push_back(v);
  }
};

inline std::vector<Tensor> run_fused(Graph g, const std::vector<TensorView>& inputs) {
  fuse(g);
  return Plan(std::move(g), Device::open("cpu:0")).run(inputs);
}

}  // namespace tw::graph::onnx
