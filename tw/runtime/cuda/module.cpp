#include <fmt/format.h>
#include <limits>

#include "tw/base/error.h"
#include "tw/runtime/cuda/cuda.h"
#include "tw/runtime/impl/cuda_gpu.h"

namespace tw::cuda {

Module::Module(Gpu& gpu, const std::string& cubin) : gpu_(gpu) {
  const Current current(gpu);
  ModuleHandle handle = nullptr;
  gpu.check(gpu.api().module_load(&handle, cubin.data()), "to load a compiled kernel");
  handle_ = handle;
}

Module::~Module() {
  const CurrentAtEnd current(gpu_);
  gpu_.api().module_unload(static_cast<ModuleHandle>(handle_));
}

std::shared_ptr<const Module> Module::load(const Device& d, const std::string& cubin) {
  return std::shared_ptr<const Module>(new Module(d.cuda(), cubin));
}

std::shared_ptr<const Function> Module::function(const std::string& name) const {
  const Current current(gpu_);
  FunctionHandle handle = nullptr;
  if (gpu_.api().module_function(&handle, static_cast<ModuleHandle>(handle_), name.c_str()) != 0)
    return nullptr;
  const std::shared_ptr<Function> f(new Function(name));
  f->gpu_ = &gpu_;
  f->handle_ = handle;
  f->module_ = shared_from_this();
  return f;
}

static void check_shape(const Gpu& gpu, const std::string& name, const LaunchShape& s) {
  auto refuse = [&](const char* what, int64_t got, int64_t least, int64_t most) {
    if (got >= least && got <= most) return;
    throw DeviceError(fmt::format("{}: '{}' is launched with {} {}: wanted {} to {}", gpu.name(),
                                  name, got, what, least, most));
  };
  refuse("blocks", s.grid, 1, std::numeric_limits<int32_t>::max());
  refuse("threads in a block", s.threads, 1, 1024);
  refuse("bytes of shared memory in a block", s.shared_bytes, 0, gpu.machine().shared_per_block);
}

void check_stream(const Function& f, const Stream& s) {
  if (&s.gpu() == f.gpu_) return;
  throw UserError(fmt::format("kernel '{}' of {} is launched on a stream of {}", f.name(),
                              f.gpu_->name(), s.gpu().name()));
}

void launch(const Function& f, std::span<const uint64_t> words, const LaunchShape& shape,
            const Stream& s) {
  const Gpu& gpu = *f.gpu_;
  check_stream(f, s);
  check_shape(gpu, f.name(), shape);
  const auto function = static_cast<FunctionHandle>(f.handle_);
  const Current current(gpu);
  if (shape.shared_bytes > f.shared_allowed_.load(std::memory_order_relaxed)) {
    gpu.check(
        gpu.api().function_set(function, kDynamicSharedBytes, static_cast<int>(shape.shared_bytes)),
        "to grant shared memory");
    f.shared_allowed_.store(shape.shared_bytes, std::memory_order_relaxed);
  }
  void* parameters[] = {const_cast<uint64_t*>(words.data())};
  LaunchAttribute early{.id = kEarlyLaunch, .value = 1};
  const LaunchConfig config{.grid = {static_cast<unsigned>(shape.grid), 1, 1},
                            .block = {static_cast<unsigned>(shape.threads), 1, 1},
                            .shared_bytes = static_cast<unsigned>(shape.shared_bytes),
                            .stream = static_cast<StreamHandle>(s.handle()),
                            .attributes = &early,
                            .attribute_count = shape.early ? 1u : 0u};
  const Result code = gpu.api().launch(&config, function, parameters, nullptr);
  if (code != 0) gpu.fail(code, fmt::format("to launch '{}'", f.name()));
}

void clear(const Stream& s, uint64_t memory, int64_t bytes) {
  const Current current(s.gpu());
  s.gpu().check(s.gpu().api().memory_set(memory, 0, static_cast<size_t>(bytes),
                                         static_cast<StreamHandle>(s.handle())),
                "to clear a kernel's workspace");
}

uint64_t workspace(const Stream& s, int64_t bytes) {
  return s.gpu().workspace(static_cast<StreamHandle>(s.handle()), bytes);
}

}  // namespace tw::cuda
