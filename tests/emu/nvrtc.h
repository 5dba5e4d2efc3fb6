#pragma once

#include <dlfcn.h>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>

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
    const auto [failed, log] = run(text, arch);
    return failed ? "refused: " + log : "";
  }

  /// The line that tells how much of a text's registers lie in memory; empty when none do.
  std::string spills(const std::string& text, const std::string& arch) const {
    std::istringstream lines(run(text, arch).second);
    for (std::string line; std::getline(lines, line);) {
      const bool tells = line.find("bytes spill stores") != std::string::npos;
      if (tells && line.find(" 0 bytes spill stores") == std::string::npos) return line;
    }
    return "";
  }

 private:
  /// Whether it failed, and all that was said.
  std::pair<bool, std::string> run(const std::string& text, const std::string& arch) const {
    void* program = nullptr;
    call("nvrtcCreateProgram", &program, text.c_str(), "kernel.cu", 0, nullptr, nullptr);
    const std::string option = "--gpu-architecture=" + arch;
    const char* options[] = {option.c_str(), "--std=c++17", "--ptxas-options=-v"};
    const int failed = call("nvrtcCompileProgram", program, 3, options);
    size_t bytes = 0;
    call("nvrtcGetProgramLogSize", program, &bytes);
    std::string log(bytes, ' ');
    call("nvrtcGetProgramLog", program, log.data());
    call("nvrtcDestroyProgram", &program);
    return {failed != 0, log};
  }

  template <class... A>
  int call(const char* name, A... arguments) const {
    return reinterpret_cast<int (*)(A...)>(dlsym(handle_, name))(arguments...);
  }
  void* handle_ = nullptr;
};

}  // namespace tw::test
