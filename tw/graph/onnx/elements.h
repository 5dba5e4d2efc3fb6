#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tw/tensor/tensor.h"

namespace tw::graph::onnx {

/// A tensor as a file gives it: bytes, or one list of numbers.
struct Encoded {
  std::string title;  ///< what messages call it: "tensor 'w'"
  int type = 0;       ///< of TensorProto::DataType
  std::vector<int64_t> dims = {};
  bool is_raw = false;
  std::string_view raw = {};             ///< little endian, packed across rows
  std::shared_ptr<void> raw_owner = {};  ///< keeps `raw`
  std::span<const float> floats = {};
  std::span<const double> doubles = {};
  std::span<const int32_t> int32s = {};
  std::span<const int64_t> int64s = {};
  std::span<const uint64_t> uint64s = {};
};

/// Why elements of that type cannot be read, empty when they can: "is of type string, which .."
std::string type_fault(int type);
/// The type of that number, when type_fault() finds nothing.
DType element_type(int type);

/// Bytes of the elements in a file. UserError naming the tensor when extents are negative, too many
/// or too large.
int64_t raw_bytes(const Encoded& e);

/// The tensor. It shares raw memory when that lies as tensors do. UserError naming the tensor where
/// data do not fit type or extents.
Tensor decode(const Encoded& e);

}  // namespace tw::graph::onnx
