#include <ctime>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "tw/base/error.h"
#include "tw/check/contestant.h"
#include "tw/check/staged.h"
#include "tw/runtime/cuda/cuda.h"

namespace tw::check {

namespace {

constexpr double kStillBusy = 50e-3;  // seconds that the GPU may work on behind a call's stream

class OnDevice : public measure::Contestant {
 public:
  OnDevice(const Device& d, std::unique_ptr<DeviceCallable> callable)
      : device_(d), callable_(std::move(callable)) {}

  std::string prepare(const std::vector<measure::TensorSet>& sets) override {
    sets_.clear();
    std::vector<measure::TensorSet> there;
    for (const measure::TensorSet& host : sets) {
      const Set& s = sets_.emplace_back(
          Set{Staged(device_, host.inputs), Staged(device_, host.outputs), false});
      measure::TensorSet& views = there.emplace_back();
      for (size_t k = 0; k < host.inputs.size(); ++k) views.inputs.push_back(s.inputs.view(k));
      for (size_t k = 0; k < host.outputs.size(); ++k) views.outputs.push_back(s.outputs.view(k));
    }
    return callable_->prepare(there);
  }

  void bring(int set) override {
    sets_[set].delivered = false;
    sets_[set].inputs.bring(stream());
    sets_[set].outputs.bring(stream());
  }
  void run(int set) override {
    sets_[set].delivered = false;
    callable_->run(set, stream());
  }
  void deliver(int set) override {
    sets_[set].outputs.fetch(stream());
    sets_[set].delivered = true;
  }

  void settle() override {
    const double start = measure::seconds(CLOCK_MONOTONIC);
    cuda::synchronize(device_);
    if (measure::seconds(CLOCK_MONOTONIC) - start > kStillBusy)
      throw DeviceError("the GPU was still busy when the work of its stream was done");
    for (Set& s : sets_) {
      if (!s.inputs.unchanged(stream())) throw DeviceError("it wrote to an input");
      if (!s.delivered)
        s.outputs.fetch(stream());
      else if (!s.outputs.unchanged(stream()))
        throw DeviceError("an output changed after the work of its stream was done");
      s.delivered = false;
    }
  }

 private:
  struct Set {
    Staged inputs, outputs;
    bool delivered;  // what its last run computed, and not settled since
  };

  /// That of the calling thread.
  const cuda::Stream& stream() {
    const std::lock_guard guard(lock_);
    std::optional<cuda::Stream>& s = streams_[std::this_thread::get_id()];
    if (!s) s = cuda::Stream::make(device_);
    return *s;
  }

  Device device_;
  std::unique_ptr<DeviceCallable> callable_;
  std::vector<Set> sets_;
  std::mutex lock_;
  std::map<std::thread::id, std::optional<cuda::Stream>> streams_;
};

}  // namespace

std::unique_ptr<measure::Contestant> on_device(const Device& d,
                                               std::unique_ptr<DeviceCallable> callable) {
  return std::make_unique<OnDevice>(d, std::move(callable));
}

}  // namespace tw::check
