#include "tw/jit/module.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tw/base/error.h"

namespace tw {

static std::atomic<int>& module_count() {
  static std::atomic<int> count{0};
  return count;
}

int loaded_modules() { return module_count(); }

Module::Module(const std::string& path, int file) : file_(file) {
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) {
    const char* reason = dlerror();
    const std::string text = reason ? reason : "no reason given";
    if (file_ >= 0) close(file_);
    throw EnvError("cannot load a compiled kernel: " + text);
  }
  ++module_count();
}

Module::~Module() {
  dlclose(handle_);
  if (file_ >= 0) close(file_);
  --module_count();
}

std::shared_ptr<const Module> Module::from_file(const std::string& path) {
  return std::shared_ptr<const Module>(new Module(path, -1));
}

std::shared_ptr<const Module> Module::from_bytes(const std::string& bytes) {
  const int file = memfd_create("tilewright-kernel", MFD_CLOEXEC);
  size_t done = 0;
  while (file >= 0 && done < bytes.size()) {
    const ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  if (file < 0 || done < bytes.size()) {
    const std::string reason = std::strerror(errno);
    if (file >= 0) close(file);
    throw EnvError("no memory for a compiled kernel: " + reason);
  }
  // The loader knows objects by path; the file stays open, so no other object gets this one's path
  // while it is loaded.
  return std::shared_ptr<const Module>(new Module(fmt::format("/proc/self/fd/{}", file), file));
}

void* Module::symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }

}  // namespace tw
