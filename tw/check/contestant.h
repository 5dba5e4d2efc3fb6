#pragma once

#include "tw/jit/kernel.h"
#include "tw/measure/contestant.h"
#include "tw/runtime/device.h"

namespace tw::check {

inline constexpr const char* kHost = "cpu:0";

/// The contestant that compiles a program and runs it on a device: kind "kernel". Its `about` is
/// the mapping that was chosen.
measure::ContestantSpec kernel_contestant(const std::string& name, const Program& p,
                                          const Mapping& mapping = {},
                                          const std::string& device = kHost);

/// A callable whose tensors lie on a GPU.
class DeviceCallable {
 public:
  virtual ~DeviceCallable() = default;
  /// Makes ready for runs on these sets, as measure::Contestant.
  virtual std::string prepare(const std::vector<measure::TensorSet>& sets) = 0;
  /// Puts into a stream what computes the outputs of sets[set]; they are complete when the stream's
  /// work is. Other threads may ask for other sets in streams of their own.
  virtual void run(int set, const cuda::Stream& stream) = 0;
};

/// It as a contestant: tensors of the host are staged (see Staged), each thread's calls go into a
/// stream of its own. Outputs are taken from there right behind the work of a call; inputs, memory
/// beside tensors, outputs of other calls, and what still runs then, are seen in settle().
std::unique_ptr<measure::Contestant> on_device(const Device& d,
                                               std::unique_ptr<DeviceCallable> callable);

/// Makes contestants of kind "kernel"; null for other kinds. For measure::serve_worker.
std::unique_ptr<measure::Contestant> make_contestant(const measure::ContestantSpec& spec,
                                                     const measure::Task& task);

}  // namespace tw::check
