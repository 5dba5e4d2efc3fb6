#include "tw/runtime/device.h"

#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/runtime/thread_pool.h"

namespace tw {

struct Device::State {
  std::string name;
  CpuMachine machine;
  ThreadPool& pool;
};

/// The one pool of the process, made by the first device. It is never destroyed: threads of the
/// program may still launch kernels while static objects go.
static ThreadPool& process_pool() {
  static ThreadPool& pool = *new ThreadPool(default_threads());
  return pool;
}

Device Device::open(const std::string& name) {
  if (name != "cpu:0") {
    throw UserError(fmt::format("unknown device '{}'", name), "known devices: cpu:0");
  }
  return open_as(detect_cpu());
}

Device Device::open_as(const CpuMachine& machine) {
  Device d;
  d.state_ = std::make_shared<State>(State{"cpu:0", machine, process_pool()});
  return d;
}

const std::string& Device::name() const { return state_->name; }
const CpuMachine& Device::cpu() const { return state_->machine; }
ThreadPool& Device::pool() const { return state_->pool; }

Tensor empty(const Device&, DType t, std::vector<int64_t> dims) {
  return host_tensor(t, std::move(dims));
}

}  // namespace tw
