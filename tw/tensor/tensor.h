#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tw/num/dtype.h"

namespace tw {

/// A strided view of memory that somebody else owns. Strides count elements and may be 0 or
/// negative; an element of index (i, j, ..) lies at data + sum(i_k * strides_k). Rank 0 is one
/// element. Packed elements are counted in their bits; see packing_fault().
struct TensorView {
  void* data = nullptr;
  DType dtype = f32;
  std::vector<int64_t> dims, strides;

  int rank() const { return static_cast<int>(dims.size()); }
  int64_t count() const;
  bool is_contiguous() const;  ///< row-major without gaps (extents of 1 have any stride)
  /// In elements, of the element of that number in row-major order.
  int64_t offset(int64_t index) const;
};

/// Row-major without gaps, but that rows of packed elements begin with a byte: they are rounded up
/// to the elements that fill whole bytes.
std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& dims, DType t = u8);
/// Why a view's packed elements do not lie as they must: the last axis has stride 1, other strides
/// are whole bytes. Empty when they do, and for other types.
std::string packing_fault(const TensorView& t);

/// The bits of the element at that offset in elements, those above the type's 0.
uint64_t load_bits(DType t, const void* data, int64_t offset);
/// Neighbours that share the byte keep theirs.
void store_bits(DType t, void* data, int64_t offset, uint64_t bits);

std::string to_string(const TensorView& t);  ///< "f32[2,3] strides [3,1]"

/// Bytes of a contiguous tensor; rows of packed elements are rounded up. Throws UserError on a
/// negative extent and when the count does not fit in 63 bits.
int64_t byte_count(DType t, const std::vector<int64_t>& dims);

/// Bytes that a view touches, relative to its data pointer: [begin, end). Empty views: {0, 0}.
struct ByteRange {
  int64_t begin = 0, end = 0;
  bool operator==(const ByteRange&) const = default;
};
/// Throws UserError when an offset does not fit in 63 bits.
ByteRange byte_range(const TensorView& t);

/// A view that shares ownership of its memory.
class Tensor {
 public:
  Tensor() = default;
  Tensor(TensorView view, std::shared_ptr<void> owner)
      : view_(std::move(view)), owner_(std::move(owner)) {}

  const TensorView& view() const { return view_; }
  operator const TensorView&() const { return view_; }
  template <class T>
  T* data() const {
    return static_cast<T*>(view_.data);
  }
  const std::vector<int64_t>& dims() const { return view_.dims; }
  DType dtype() const { return view_.dtype; }
  int64_t count() const { return view_.count(); }

  /// Views of the same memory. Errors (axis, range) are UserErrors.
  Tensor transpose(int a, int b) const;
  Tensor slice(int axis, int64_t begin, int64_t end, int64_t step = 1) const;
  Tensor reshape(std::vector<int64_t> dims) const;  ///< contiguous tensors only
  Tensor expand(std::vector<int64_t> dims) const;   ///< extents of 1 get stride 0
  Tensor bitcast(DType t) const;                    ///< elements of the same size

 private:
  TensorView view_;
  std::shared_ptr<void> owner_;
};

/// Bytes of memory that this machine has.
int64_t machine_memory();

/// Host memory, 64-byte aligned, contiguous, uninitialised. Throws UserError when the byte count
/// overflows, EnvError when it is more than the machine's memory or not to be had.
Tensor host_tensor(DType t, std::vector<int64_t> dims);
/// Contiguous copy on the host.
Tensor copy(const TensorView& t);

/// One element as double (integers up to 2^53 exactly) at a linear row-major index; slow, for tests
/// and tools. Throws UserError when the index is outside.
double get(const TensorView& t, int64_t index);
void set(const TensorView& t, int64_t index, double value);
/// All elements in row-major order.
std::vector<double> to_doubles(const TensorView& t);

}  // namespace tw
