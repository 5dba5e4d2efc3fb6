#pragma once

#include <cstdint>

#include "tw/tensor/tensor.h"

namespace tw::dlpack {

/// The structs of DLPack's C ABI, version 0.8 of the specification (dmlc.github.io/dlpack), which
/// every exporter still offers. Names are ours, layout is theirs.
struct Device {
  int32_t type;  ///< 1: host memory
  int32_t id;
};
struct DataType {
  uint8_t code;  ///< int 0, uint 1, float 2, bfloat 4, bool 6, e4m3fn 10, e5m2 12, e8m0 14
  uint8_t bits;
  uint16_t lanes;
};
struct Array {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  ///< in elements; null: row-major without gaps
  uint64_t byte_offset;
};
struct ManagedTensor {
  Array array;
  void* context;
  void (*deleter)(ManagedTensor* self);
};

/// Takes over `m`: its deleter runs when the last view of the tensor is gone, and also when this
/// throws. Any strides are taken as they are, negative ones too. Throws UserError for memory that
/// is not the host's, for element types we lack, and for data not aligned to its element.
Tensor import_tensor(ManagedTensor* m);

/// A tensor for another library, which must call the deleter. Shares ownership of the memory.
ManagedTensor* export_tensor(const Tensor& t);

}  // namespace tw::dlpack
