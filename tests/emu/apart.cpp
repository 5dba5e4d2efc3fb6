#include "tests/emu/apart.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/emu/impl/text.h"

namespace tw::test {
namespace {

constexpr const char* kCacheFolder = "TW_CACHE_DIR";
constexpr rlim_t kSecondsApart = 10;  // a launch takes less than one

Verdict judged(const std::string& kernel, const std::string& text, const std::string& config,
               uint64_t seeds) {
  try {
    const Pipeline p = pipeline(kernel, text, Config(config));
    try {
      emu::load_text(with_prelude(p.launch.program), p.launch.spec.entry);
    } catch (const InternalError& e) {
      return {Verdict::Kind::no_text, e.what()};
    }
    return first_fault(p, seeds);
  } catch (const std::exception& e) {
    return {Verdict::Kind::failed, e.what()};
  }
}

std::string all_of(std::FILE* file) {
  std::string text;
  char buffer[4096];
  std::rewind(file);
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, file)) text.append(buffer, n);
  return text;
}

}  // namespace

ScratchCache::ScratchCache()
    : folder_((std::filesystem::temp_directory_path() / "emu-XXXXXX").string()) {
  const char* before = std::getenv(kCacheFolder);
  before_ = before ? before : "";
  if (!mkdtemp(folder_.data())) throw std::runtime_error("no folder " + folder_);
  setenv(kCacheFolder, folder_.c_str(), 1);
}

ScratchCache::~ScratchCache() {
  before_.empty() ? unsetenv(kCacheFolder) : setenv(kCacheFolder, before_.c_str(), 1);
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

Verdict judged_apart(const std::string& kernel, const std::string& text, const std::string& config,
                     uint64_t seeds) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0 || !file) throw std::runtime_error("no child");
  if (pid == 0) {
    const rlimit limit{kSecondsApart, kSecondsApart + 1}, no_core{0, 0};
    setrlimit(RLIMIT_CPU, &limit);
    setrlimit(RLIMIT_CORE, &no_core);
    const Verdict v = judged(kernel, text, config, seeds);
    std::fputs(v.text.c_str(), file.get());
    std::fflush(file.get());
    _exit(static_cast<int>(v.kind));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) != pid) {
  }
  if (WIFEXITED(status))
    return {static_cast<Verdict::Kind>(WEXITSTATUS(status)), all_of(file.get())};
  const bool late = WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL;
  return {late ? Verdict::Kind::late : Verdict::Kind::killed,
          fmt::format("signal {}", WTERMSIG(status))};
}

}  // namespace tw::test
