#include "tw/runtime/device.h"

#include <atomic>
#include <charconv>
#include <fmt/format.h>
#include <optional>

#include "tw/base/error.h"
#include "tw/runtime/impl/cuda_gpu.h"
#include "tw/runtime/thread_pool.h"

namespace tw {

struct Device::State {
  std::string name;
  std::optional<CpuMachine> cpu = {};
  ThreadPool* pool = nullptr;
  cuda::Gpu* gpu = nullptr;
  const GpuMachine* emulated = nullptr;
  std::optional<GpuMachine> absent = {};  ///< a GPU that is only described
};

/// What emu:0 plays; null until it is registered. Never destroyed, as devices point to it.
static std::atomic<const GpuMachine*> emulated_gpu{nullptr};

/// The one pool of the process, made by the first device. It is never destroyed: threads of the
/// program may still launch kernels while static objects go.
static ThreadPool& process_pool() {
  static ThreadPool& pool = *new ThreadPool(default_threads());
  return pool;
}

/// The N of "cuda:N".
static std::optional<int> cuda_ordinal(const std::string& name) {
  constexpr std::string_view kPrefix = "cuda:";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char *from = name.data() + kPrefix.size(), *to = name.data() + name.size();
  int ordinal = -1;
  const auto [end, error] = std::from_chars(from, to, ordinal);
  const bool spelled = error == std::errc() && end == to && ordinal >= 0 &&
                       name == fmt::format("{}{}", kPrefix, ordinal);
  return spelled ? std::optional(ordinal) : std::nullopt;
}

Device Device::open(const std::string& name) {
  if (name == "cpu:0") return open_as(detect_cpu());
  const GpuMachine* emulated = emulated_gpu;
  Device d;
  if (emulated && name == "emu:0") {
    d.state_ = std::make_shared<State>(State{.name = name, .emulated = emulated});
    return d;
  }
  const std::optional<int> ordinal = cuda_ordinal(name);
  if (!ordinal) {
    throw UserError(fmt::format("unknown device '{}'", name),
                    fmt::format("known devices: cpu:0, cuda:0{}", emulated ? ", emu:0" : ""));
  }
  d.state_ = std::make_shared<State>(State{.name = name, .gpu = &cuda::Gpu::open(*ordinal)});
  return d;
}

Device Device::open_as(const CpuMachine& machine) {
  Device d;
  d.state_ = std::make_shared<State>(State{"cpu:0", machine, &process_pool()});
  return d;
}

void Device::add_emulated(const GpuMachine& machine) {
  const GpuMachine* none = nullptr;
  auto made = std::make_unique<const GpuMachine>(machine);
  if (emulated_gpu.compare_exchange_strong(none, made.get())) made.release();
}

Device Device::open_as(const GpuMachine& machine) {
  Device d;
  d.state_ = std::make_shared<State>(State{.name = machine.arch, .absent = machine});
  return d;
}

const std::string& Device::name() const { return state_->name; }
DeviceKind Device::kind() const {
  if (state_->cpu) return DeviceKind::cpu;
  return state_->emulated ? DeviceKind::emu : DeviceKind::cuda;
}

static void want_kind(const Device& d, DeviceKind kind, const char* text) {
  if (d.kind() != kind) {
    throw UserError(fmt::format("device '{}' is used as a {}", d.name(), text),
                    "this part runs on no other devices");
  }
}

const CpuMachine& Device::cpu() const {
  want_kind(*this, DeviceKind::cpu, "CPU");
  return *state_->cpu;
}
ThreadPool& Device::pool() const {
  want_kind(*this, DeviceKind::cpu, "CPU");
  return *state_->pool;
}
cuda::Gpu& Device::cuda() const {
  want_kind(*this, DeviceKind::cuda, "GPU");
  if (!state_->gpu) {
    throw UserError(fmt::format("device '{}' is a description: nothing runs on it", name()),
                    "open cuda:0");
  }
  return *state_->gpu;
}
const GpuMachine& Device::gpu() const {
  if (state_->emulated) return *state_->emulated;
  want_kind(*this, DeviceKind::cuda, "GPU");
  return state_->absent ? *state_->absent : state_->gpu->machine();
}

Target Device::target(int threads) const {
  if (kind() != DeviceKind::cpu) return gpu();
  return {cpu(), threads > 0 ? threads : cpu().cores};
}

Tensor empty(const Device& d, DType t, std::vector<int64_t> dims) {
  if (d.kind() != DeviceKind::cuda) return host_tensor(t, std::move(dims));
  TensorView v{nullptr, t, std::move(dims), {}};
  const int64_t size = byte_count(t, v.dims);
  v.strides = contiguous_strides(v.dims, t);
  cuda::Gpu& gpu = d.cuda();
  const cuda::Pointer p = cuda::allocate(gpu, size, to_string(v));
  v.data = reinterpret_cast<void*>(p);
  return {v, std::shared_ptr<void>(v.data, [&gpu, p](void*) { cuda::release(gpu, p); })};
}

}  // namespace tw
