#pragma once

#include <memory>
#include <string>

#include "tw/target/machine.h"
#include "tw/tensor/tensor.h"

namespace tw {

class ThreadPool;

/// A place where kernels run. Cheap to copy. "cpu:0" is this machine.
class Device {
 public:
  /// Throws UserError for a name it does not know, with the known ones.
  static Device open(const std::string& name);
  const std::string& name() const;
  const CpuMachine& cpu() const;
  ThreadPool& pool() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Uninitialised memory of the device, contiguous, 64-byte aligned.
Tensor empty(const Device& d, DType t, std::vector<int64_t> dims);

}  // namespace tw
