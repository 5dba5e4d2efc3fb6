#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/runtime/impl/cuda_gpu.h"

namespace tw::cuda {

Gpu& Gpu::open(int ordinal) {
  static std::mutex lock;
  static auto& made = *new std::map<std::pair<const Api*, int>, std::unique_ptr<Gpu>>;
  const Api& api = driver();
  const std::lock_guard guard(lock);
  std::unique_ptr<Gpu>& slot = made[{&api, ordinal}];
  if (!slot) slot.reset(new Gpu(api, ordinal));
  return *slot;
}

Gpu::Gpu(const Api& api, int ordinal)
    : api_(api), ordinal_(ordinal), name_(fmt::format("cuda:{}", ordinal)) {
  int count = 0, device = 0;
  check(api.device_count(&count), "to count devices");
  if (ordinal >= count) {
    throw UserError(fmt::format("unknown device '{}'", name_),
                    count == 1 ? "the driver has cuda:0"
                               : fmt::format("the driver has cuda:0 to cuda:{}", count - 1));
  }
  check(api.device_get(&device, ordinal), "to be found");
  auto get = [&](Attribute a) {
    int value = 0;
    check(api.device_attribute(&value, a, device), "to tell an attribute");
    return value;
  };
  char name[256] = "";
  size_t memory = 0;
  check(api.device_name(name, sizeof name - 1, device), "to tell its name");
  check(api.device_memory(&memory, device), "to tell its memory");
  const int major = get(Attribute::major), minor = get(Attribute::minor);
  if (major < 8) {
    throw EnvError(fmt::format("{} '{}' has compute capability {}.{}: wanted 8.0 or later", name_,
                               name, major, minor));
  }
  machine_ = {
      .name = name,
      .arch = gpu_arch(major, minor),
      .multiprocessors = get(Attribute::multiprocessors),
      .shared_per_block = get(Attribute::shared_per_block),
      .shared_per_multiprocessor = get(Attribute::shared_per_multiprocessor),
      .registers = get(Attribute::registers_per_multiprocessor),
      .max_threads = get(Attribute::threads_per_multiprocessor),
      .most_cluster = most_cluster(major),
      .early_launch = early_launch(major),
      .l2 = get(Attribute::l2_bytes),
      .memory = static_cast<int64_t>(memory),
      .copy_bandwidth =
          copy_bandwidth(get(Attribute::memory_clock_khz), get(Attribute::memory_bus_bits)),
  };
  check(api.context_retain(&context_, device), "to make its context");
}

void Gpu::fail(Result code, const std::string& what) const {
  throw DeviceError(fmt::format("{} failed {}: {}", name_, what, text_of(api_, code)));
}

Pointer Gpu::workspace(StreamHandle stream, int64_t bytes) {
  const std::lock_guard guard(lock_);
  Workspace& w = workspaces_[stream];
  if (w.bytes >= bytes) return w.memory;
  const int64_t size = std::max(round_up(bytes, int64_t{1} << 20), 2 * w.bytes);
  w.memory = allocate(*this, size, "a kernel's workspace");
  w.bytes = size;
  return w.memory;
}

Pointer allocate(const Gpu& gpu, int64_t bytes, const std::string& what) {
  const Current current(gpu);
  Pointer p = 0;
  const Result code = gpu.api().memory_alloc(&p, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  if (code == kOutOfMemory) {
    size_t free = 0, total = 0;
    gpu.api().memory_info(&free, &total);
    throw EnvError(fmt::format(
        "no memory on {} for {}: it takes {:.1f} GB, {:.1f} GB of {:.1f} GB "
        "are free",
        gpu.name(), what, double(bytes) * 1e-9, double(free) * 1e-9, double(total) * 1e-9));
  }
  gpu.check(code, "to give memory");
  return p;
}

void release(const Gpu& gpu, Pointer p) noexcept {
  const CurrentAtEnd current(gpu);
  gpu.api().memory_free(p);
}

}  // namespace tw::cuda
