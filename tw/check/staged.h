#pragma once

#include <vector>

#include "tw/jit/kernel.h"
#include "tw/runtime/device.h"
#include "tw/tensor/tensor.h"

namespace tw::check {

/// Runs a kernel on tensors of the host. On a GPU each argument is copied there as its bytes lie,
/// gaps between elements too and with the address's place in its line, between guard zones; what
/// the kernel wrote is copied back. Throws DeviceError when a guard zone was written.
void run_on_host_tensors(const Kernel& kernel, const Device& d,
                         const std::vector<TensorView>& inputs,
                         const std::vector<TensorView>& outputs,
                         const std::vector<DimValue>& dims = {});

/// A host tensor's copy on a device.
class Staged {
 public:
  Staged(const Device& d, const TensorView& host);
  const TensorView& view() const { return view_; }
  /// Copies all bytes back.
  void fetch() const;

 private:
  Device device_;
  TensorView host_, view_;
  ByteRange range_;
  int64_t begin_ = 0;  ///< of the range in the copy
  Tensor copy_;
};

}  // namespace tw::check
