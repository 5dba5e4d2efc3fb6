#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tw/target/launch_spec.h"
#include "tw/tensor/tensor.h"

namespace tw {

struct EmuOptions {
  uint64_t seed = 0;        ///< decides which thread runs when, and when copies arrive
  bool check_races = true;  ///< races and uninitialised reads; bounds are always checked
  int resident = 0;         ///< blocks that run at the same time; 0: as many as fit
  int64_t blocks = 0;       ///< most blocks of the grid; 0: one an instance
};

enum class EmuFault : uint8_t {
  race,           ///< two accesses, one of them a write, that nothing orders
  uninitialised,  ///< a read of memory that nothing has written
  out_of_bounds,  ///< an access outside all arguments and the block's shared memory
  misaligned,
  divergence,  ///< threads meet at different barriers or calls of a warp, or have left
  deadlock,    ///< nobody can go on, or all wait in loops
  barrier,     ///< a barrier is used before it is ready, or by others or more than it is for
  fence,       ///< asynchronous work comes to what a thread has written without a fence
  in_flight,   ///< registers or memory of asynchronous work that is not waited for
};
const char* name(EmuFault fault);

/// The first thing that went wrong: nothing when the run was clean.
struct EmuReport {
  std::optional<EmuFault> fault = {};
  std::string text = {};        ///< of several lines: what, who, where
  std::vector<int> lines = {};  ///< of the emitted text, the accused first
  bool clean() const { return !fault; }
};

/// Runs emitted CUDA text, printed for the emulator, on the CPU: one fiber a thread. Arguments are
/// in declaration order, `dims` are the values of the spec's. Outputs are what the text wrote even
/// when the report is not clean. Throws InternalError when the text does not compile or does not
/// fit the spec. Launches of one process run one after another.
EmuReport run_emulated(const std::string& text, const LaunchSpec& spec,
                       std::span<const TensorView> args, std::span<const int64_t> dims,
                       const EmuOptions& options = {});

}  // namespace tw
