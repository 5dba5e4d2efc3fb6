#pragma once

#include <optional>

#include "tw/graph/graph.h"

namespace tw::graph::onnx {

/// What decides the elements of a tensor.
enum class DecidedBy : uint8_t { constants, sizes, data };
DecidedBy decided_by(const Graph& g, TensorId t);

/// The elements of a short tensor that constants decide, however they are computed: floats as f64,
/// integers in their types. Nothing for others.
std::optional<Tensor> known_value(const Graph& g, TensorId t);

}  // namespace tw::graph::onnx
