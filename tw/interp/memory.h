#pragma once

#include <map>
#include <vector>

#include "tw/interp/scalar.h"
#include "tw/interp/tile.h"
#include "tw/tensor/tensor.h"

namespace tw {

/// The memory of one parameter: elements by their coordinates in the tensor. Written elements keep
/// their bound beside the memory they are stored in.
class ParamMemory {
 public:
  ParamMemory(TensorView view, bool written);
  const std::vector<int64_t>& dims() const { return view_.dims; }
  bool inside(const Extents& at) const;
  Scalar read(const Extents& at) const;  ///< `at` is inside
  void write(const Extents& at, const Scalar& value);
  /// An atomic update in bounded mode: float sums hold whatever the order of their terms.
  void update(AtomicOp op, const Extents& at, const Scalar& value, const Scalar& expected);
  void forget();  ///< any element may have been written
  void clear();   ///< every element is 0
  const std::vector<Scalar>& elements() const { return elements_; }  ///< of a written parameter

 private:
  void put(const Extents& at, const Scalar& value);
  int64_t offset(const Extents& at) const;
  TensorView view_;
  bool written_;
  std::vector<Scalar> elements_;
  std::map<size_t, std::vector<Scalar>> sums_;  ///< terms of elements that atomics add to
};

/// The element that an atomic leaves, in the exact dtype.
/// `expected`: of a cas.
Scalar updated(AtomicOp op, DType t, const Scalar& old, const Scalar& value,
               const Scalar& expected);

}  // namespace tw
