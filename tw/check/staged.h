#pragma once

#include <memory>
#include <vector>

#include "tw/jit/kernel.h"
#include "tw/runtime/cuda/cuda.h"
#include "tw/runtime/device.h"
#include "tw/tensor/tensor.h"

namespace tw::check {

/// Runs a kernel on tensors of the host, on a GPU through Staged.
void run_on_host_tensors(const Kernel& kernel, const Device& d,
                         const std::vector<TensorView>& inputs,
                         const std::vector<TensorView>& outputs,
                         const std::vector<DimValue>& dims = {});

/// Copies of host tensors on a GPU: their bytes as they lie, gaps between elements too and with the
/// address's place in its line, between guard zones. Behind each, or before one that begins a page
/// of the host and ends none, lies memory that an access may not touch. Tensors that share bytes
/// share them there, too.
class Staged {
 public:
  Staged(const Device& d, const std::vector<TensorView>& host);
  /// Of the tensor with that number.
  const TensorView& view(size_t k) const { return views_[k]; }
  /// Copies all bytes there once more.
  void bring(const cuda::Stream& s) const;
  /// Copies all bytes back as they are when the work of the stream is done, whatever other streams
  /// do then. Throws DeviceError when a guard zone was written.
  void fetch(const cuda::Stream& s) const;
  /// Whether they are those of the host. Throws as fetch().
  bool unchanged(const cuda::Stream& s) const;

 private:
  /// A range of the host's addresses and its copy.
  struct Block {
    char *begin, *end;
    std::shared_ptr<cuda::FencedMemory> memory;
    int64_t at;             ///< where the copy begins in it
    int64_t before, after;  ///< bytes of its guard zones
    int64_t size() const { return end - begin; }
    /// With the guard zones.
    TensorView all() const;
    Tensor taken = {};  ///< what all() was
  };
  static Block block(const Device& d, char* begin, char* end);
  /// Puts copies of all into the stream, then waits for it and lets other threads have the CPU: one
  /// to the host would keep them from starting work.
  void take(const cuda::Stream& s) const;
  /// The bytes of a copy, when its guard zones are seen to be whole.
  static Tensor image(const Block& b, const cuda::Stream& s);

  Device device_;
  std::vector<Block> blocks_;
  std::vector<TensorView> views_;
};

}  // namespace tw::check
