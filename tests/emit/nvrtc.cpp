#include "tests/emit/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>
#include <stdexcept>
#include <vector>

namespace tw::test {
namespace {

std::vector<std::string> matches(const std::string& pattern) {
  std::vector<std::string> list;
  glob_t found;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t k = 0; k < found.gl_pathc; ++k) list.emplace_back(found.gl_pathv[k]);
  }
  globfree(&found);
  return list;
}

/// libnvrtc opens its builtins by their bare name: where they lie beside it they are opened first.
void* open_library() {
  for (const std::string folder :
       {TW_TEST_DIR "/../../.venv/lib/python3*/site-packages/nvidia/*/lib",
        "/usr/local/cuda*/lib64"}) {
    for (const std::string& library : matches(folder + "/libnvrtc.so.1[0-9]")) {
      const std::string here = library.substr(0, library.rfind('/'));
      for (const std::string& builtins : matches(here + "/libnvrtc-builtins.so.1[0-9]*"))
        dlopen(builtins.c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    }
  }
  return dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
}

void* library() {
  static void* const handle = open_library();
  return handle;
}

template <class F>
F symbol(const char* name) {
  const auto f = reinterpret_cast<F>(dlsym(library(), name));
  if (!f) throw std::runtime_error(fmt::format("NVRTC has no {}", name));
  return f;
}

using Unit = void*;

}  // namespace

bool has_nvrtc() { return library() != nullptr; }

std::string nvrtc_complaints(const std::string& text, const std::string& arch,
                             const std::vector<const char*>& more) {
  const auto create =
      symbol<int (*)(Unit*, const char*, const char*, int, const char* const*, const char* const*)>(
          "nvrtcCreateProgram");
  const auto compile = symbol<int (*)(Unit, int, const char* const*)>("nvrtcCompileProgram");
  const auto log_size = symbol<int (*)(Unit, size_t*)>("nvrtcGetProgramLogSize");
  const auto get_log = symbol<int (*)(Unit, char*)>("nvrtcGetProgramLog");
  const auto destroy = symbol<int (*)(Unit*)>("nvrtcDestroyProgram");
  Unit program = nullptr;
  create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr);
  const std::string target = "--gpu-architecture=" + arch;
  std::vector<const char*> options = {target.c_str(), "--std=c++17", "-diag-suppress=177,186,550"};
  options.insert(options.end(), more.begin(), more.end());
  const int status = compile(program, static_cast<int>(options.size()), options.data());
  size_t size = 0;
  log_size(program, &size);
  std::string log(size, '\0');
  get_log(program, log.data());
  destroy(&program);
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  if (log.empty() && status != 0) return fmt::format("status {}", status);
  return log;
}

}  // namespace tw::test
