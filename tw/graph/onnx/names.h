#pragma once

#include <string>

namespace tw::graph::onnx {

/// The text with what no line of a message can hold replaced by '?'.
std::string printable(const std::string& text);

/// The name itself, which must be UTF-8 without control characters. UserError naming `what`.
std::string checked_name(const std::string& name, const std::string& what);

}  // namespace tw::graph::onnx
