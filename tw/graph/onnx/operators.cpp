#include "tw/graph/onnx/importer.h"

namespace tw::graph::onnx {

const std::vector<Operator>& operators() {
  static const std::vector<Operator> all = [] {
    std::vector<Operator> tables;
    for (const auto& table : {pointwise_operators(), shape_operators(), reduce_operators(),
                              matmul_operators(), gather_operators(), window_operators()})
      tables.insert(tables.end(), table.begin(), table.end());
    return tables;
  }();
  return all;
}

}  // namespace tw::graph::onnx
