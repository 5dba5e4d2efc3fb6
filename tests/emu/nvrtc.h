#pragma once

#include <dlfcn.h>
#include <filesystem>
#include <set>
#include <string>

namespace tw::test {

/// NVRTC of the Python package in .venv; false when it is not there.
class Nvrtc {
 public:
  Nvrtc() {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path root = fs::path(TW_TEST_DIR) / "../../.venv/lib";
    for (auto it = fs::recursive_directory_iterator(
             root, fs::directory_options::skip_permission_denied, error);
         !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      if (it->path().filename() != "libnvrtc.so.13") continue;
      handle_ = dlopen(it->path().c_str(), RTLD_NOW | RTLD_LOCAL);
      break;
    }
  }
  explicit operator bool() const { return handle_ != nullptr; }

  /// What the compiler says of a text that it refuses; empty when it compiles.
  std::string compile(const std::string& text, const std::string& arch) const {
    void* program = nullptr;
    call("nvrtcCreateProgram", &program, text.c_str(), "kernel.cu", 0, nullptr, nullptr);
    const std::string option = "--gpu-architecture=" + arch;
    const char* options[] = {option.c_str(), "--std=c++17"};
    const int failed = call("nvrtcCompileProgram", program, 2, options);
    size_t bytes = 0;
    call("nvrtcGetProgramLogSize", program, &bytes);
    std::string log(bytes, ' ');
    call("nvrtcGetProgramLog", program, log.data());
    call("nvrtcDestroyProgram", &program);
    return failed != 0 ? "refused: " + log : "";
  }

 private:
  template <class... A>
  int call(const char* name, A... arguments) const {
    return reinterpret_cast<int (*)(A...)>(dlsym(handle_, name))(arguments...);
  }
  void* handle_ = nullptr;
};

}  // namespace tw::test
