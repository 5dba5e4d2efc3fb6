#pragma once

#include <variant>

#include "tw/target/gpu.h"
#include "tw/target/machine.h"

namespace tw {

/// The machine that a program is made for, of any kind: what tilings may look at. Device::target()
/// gives that of a device.
class Target {
 public:
  /// So many threads of a CPU.
  Target(CpuMachine m, int threads) : machine_(std::move(m)), threads_(threads) {}
  Target(GpuMachine m) : machine_(std::move(m)) {}

  /// Null where the machine is of another kind.
  const CpuMachine* cpu() const { return std::get_if<CpuMachine>(&machine_); }
  const GpuMachine* gpu() const { return std::get_if<GpuMachine>(&machine_); }
  int threads() const { return threads_; }  ///< of a CPU, else 1

 private:
  std::variant<CpuMachine, GpuMachine> machine_;
  int threads_ = 1;
};

}  // namespace tw
