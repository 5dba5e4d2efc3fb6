#include <dlfcn.h>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <mutex>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/runtime/impl/cuda_api.h"

namespace tw::cuda {

/// What NVRTC 13 makes is for drivers of CUDA 13 and later.
static constexpr int kLeastDriver = 13000;

static std::unique_ptr<const Api> load_driver(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    throw EnvError(fmt::format("no CUDA driver: {}", reason ? reason : path),
                   "install NVIDIA's driver, or name its libcuda.so.1 in TW_CUDA_DRIVER");
  }
  auto api = std::make_unique<Api>();
  api->path = path;
  std::string lacks;
#define TW_CUDA_FIND(member, symbol, parameters)                                 \
  api->member = reinterpret_cast<decltype(api->member)>(dlsym(library, symbol)); \
  if (!api->member && lacks.empty()) lacks = symbol;
  TW_CUDA_DRIVER(TW_CUDA_FIND)
#undef TW_CUDA_FIND
  if (lacks.empty()) return api;
  dlclose(library);
  throw EnvError(fmt::format("the CUDA driver '{}' has no {}", path, lacks),
                 "install NVIDIA's driver 580 or later");
}

static void check_driver(const Api& api) {
  int version = 0;
  api.driver_version(&version);
  if (version < kLeastDriver) {
    throw EnvError(fmt::format("the CUDA driver '{}' is for CUDA {}.{}: wanted {}.{} or later",
                               api.path, version / 1000, version % 1000 / 10, kLeastDriver / 1000,
                               kLeastDriver % 1000 / 10),
                   "install NVIDIA's driver 580 or later");
  }
  const Result code = api.init(0);
  if (code == kNoDevice) throw EnvError(fmt::format("the CUDA driver '{}' sees no GPU", api.path));
  if (code != 0) {
    throw EnvError(
        fmt::format("the CUDA driver '{}' does not start: {}", api.path, text_of(api, code)));
  }
}

const Api& driver() {
  static std::mutex lock;
  static auto& loaded = *new std::map<std::string, std::unique_ptr<const Api>>;
  const std::string path = env(Env::cuda_driver);
  const Api* api = nullptr;
  {
    const std::lock_guard guard(lock);
    std::unique_ptr<const Api>& slot = loaded[path];
    if (!slot) slot = load_driver(path);
    api = slot.get();
  }
  check_driver(*api);
  return *api;
}

std::string text_of(const Api& api, Result code) {
  const char *name = nullptr, *text = nullptr;
  if (api.error_name(code, &name) != 0 || !name) return fmt::format("CUDA error {}", code);
  if (api.error_text(code, &text) != 0 || !text) return name;
  return fmt::format("{} ({})", name, text);
}

}  // namespace tw::cuda
