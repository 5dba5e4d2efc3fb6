#pragma once

#include <memory>
#include <string>

#include "tw/target/machine.h"
#include "tw/tensor/tensor.h"

namespace tw {

class ThreadPool;
namespace cuda {
class Gpu;
}

enum class DeviceKind : uint8_t { cpu, cuda, emu };

/// A place where kernels run. Cheap to copy. "cpu:0" is this machine, "cuda:N" its Nth NVIDIA GPU,
/// "emu:0" a GPU that the CPU plays with memory of the host, known after register_emulator() of
/// tw/emu/device.h.
class Device {
 public:
  /// Throws UserError for a name it does not know, with the known ones; for GPUs EnvError when
  /// there is no driver, or none that is new enough.
  static Device open(const std::string& name);
  /// cpu:0, with kernels compiled as for `machine`: to run the texts of narrower vectors and of
  /// other cache sizes here. Running them where the instructions lack is the caller's mistake.
  static Device open_as(const CpuMachine& machine);
  /// Makes emu:0 known, as such a GPU.
  static void add_emulated(const GpuMachine& machine);
  /// A GPU that may not be here, called as its architecture: for texts, not for launches and
  /// memory.
  static Device open_as(const GpuMachine& machine);
  const std::string& name() const;
  DeviceKind kind() const;
  /// What programs for it are made for: of a CPU so many threads, 0: all that it has.
  Target target(int threads = 0) const;
  /// Those of the kind; of a device of another they throw UserError.
  const CpuMachine& cpu() const;
  ThreadPool& pool() const;
  const GpuMachine& gpu() const;
  cuda::Gpu& cuda() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// This machine: instruction set from the processor, caches from the operating system, cores that
/// this process may use. A hypervisor that shows the caches of the whole socket is believed.
CpuMachine detect_cpu();

/// Uninitialised memory of the device, contiguous, 64-byte aligned. Throws UserError when the byte
/// count overflows, EnvError when the device has not as much.
Tensor empty(const Device& d, DType t, std::vector<int64_t> dims);

}  // namespace tw
