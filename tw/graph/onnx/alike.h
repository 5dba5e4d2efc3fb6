#pragma once

#include "tw/graph/onnx/importer.h"

namespace tw::graph::onnx {

/// UserError where inputs have different types that ONNX wants to have one. Handlers may rely on
/// it.
void check_alike(const Context& c);

}  // namespace tw::graph::onnx
