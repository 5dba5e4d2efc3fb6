#pragma once

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tw/ir/print.h"
#include "tw/jit/kernel.h"

namespace tw::test {

/// y = x OP value, a tile of 64 elements at a time.
inline Program scale(double value, const std::string& op = "mul") {
  return parse(
      fmt::format("program scale\ndim N\nin x: f32[N]\nout y: f32[N]\ngrid (cdiv(N, 64))\n"
                  "%0 = load x{{pid0*64}} : f32[64]\n%1 = full {} : f32[64]\n"
                  "%2 = {} %0, %1 : f32[64]\nstore %2 to y{{pid0*64}}\n",
                  value, op));
}

/// Element 3 of y for x = 0, 1, 2, ..
inline double fourth(const Kernel& k, int64_t n = 100) {
  Tensor x = host_tensor(f32, {n}), y = host_tensor(f32, {n});
  for (int64_t i = 0; i < n; ++i) set(x, i, static_cast<double>(i));
  k({x}, {y});
  return get(y, 3);
}
inline double fourth(const Program& p) { return fourth(compile(p, Device::open("cpu:0"))); }

/// An environment variable while the object lives.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name);
    had_ = before != nullptr;
    if (before) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedEnv() {
    if (had_) {
      setenv(name_, before_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

 private:
  const char* name_;
  bool had_ = false;
  std::string before_;
};

/// An empty folder, removed at the end, that is the cache folder meanwhile.
class TempCache {
 public:
  TempCache() : path_(make()), env_("TW_CACHE_DIR", path_) {}
  ~TempCache() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  /// Paths of the files with this extension, sorted.
  std::vector<std::string> files(const std::string& extension) const {
    std::vector<std::string> found;
    for (const auto& e : std::filesystem::directory_iterator(path_)) {
      if (e.path().extension() == extension) found.push_back(e.path());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  /// Files that are no entry, source or lock.
  int litter() const {
    int n = 0;
    for (const auto& e : std::filesystem::directory_iterator(path_)) {
      const std::string extension = e.path().extension();
      n += extension != ".so" && extension != ".cpp" && e.path().filename() != "lock";
    }
    return n;
  }

 private:
  static std::string make() {
    std::string path = std::filesystem::temp_directory_path() / "tw_jit_test_XXXXXX";
    if (!mkdtemp(path.data())) throw std::runtime_error("mkdtemp");
    return path;
  }
  std::string path_;
  ScopedEnv env_;
};

/// Starts a child that ends with the code of body(), 99 when it throws, killed after a minute.
template <class F>
pid_t start_child(F&& body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  alarm(60);
  int code = 99;
  try {
    code = body();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "child: %s\n", e.what());
  }
  std::fflush(nullptr);
  _exit(code);
}

/// Exit code of the child, or -1 when a signal ended it.
inline int end_of(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tw::test
