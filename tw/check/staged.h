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

/// Copies of host tensors on a device. Tensors that share bytes share them there, too.
class Staged {
 public:
  Staged(const Device& d, const std::vector<TensorView>& host);
  /// Of the tensor with that number.
  const TensorView& view(size_t k) const { return views_[k]; }
  /// Copies all bytes back. Throws DeviceError when a guard zone was written.
  void fetch() const;

 private:
  /// A range of the host's addresses and its copy.
  struct Block {
    char *begin, *end;
    int64_t before;  ///< bytes of the copy before it
    Tensor copy;
  };
  Device device_;
  std::vector<Block> blocks_;
  std::vector<TensorView> views_;
};

}  // namespace tw::check
