#pragma once

#include <vector>

#include "tw/graph/onnx/importer.h"

namespace tw::graph::onnx {

/// UserError when nodes are not in an order in which values come before their use, a value is made
/// twice, or there is no such value.
void check_structure(const Model& m);

/// The entry for each node. UserError that lists all nodes that have none.
std::vector<const Operator*> operators_of(const Model& m);

/// A hint for a name that is not among `known`, where those are few enough to tell.
std::string near_names(const std::string& name, const std::vector<std::string>& known);

}  // namespace tw::graph::onnx
