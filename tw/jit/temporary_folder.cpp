#include "tw/jit/temporary_folder.h"

#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/jit/process.h"

namespace tw {

namespace fs = std::filesystem;

static constexpr const char* kPrefix = "tilewright-compile-";

/// A descriptor that holds the folder's lock, or -1: it is held elsewhere, or is no folder of ours.
static int lock_folder(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat s;
  if (file < 0) return -1;
  if (fstat(file, &s) == 0 && s.st_uid == geteuid() && flock(file, LOCK_EX | LOCK_NB) == 0) {
    return file;
  }
  close(file);
  return -1;
}

/// Only files that a compile makes go: a folder that holds others stays, whoever's it is.
static void remove_leftover(const std::string& path) {
  for (const char* file : {"/kernel.cpp", "/kernel.so", "/messages"}) {
    unlink((path + file).c_str());
  }
  rmdir(path.c_str());
}

/// Younger ones may not be locked yet.
static bool is_old(const std::string& path) {
  struct stat s;
  return lstat(path.c_str(), &s) == 0 && time(nullptr) - s.st_mtim.tv_sec > kCompileSeconds;
}

static void remove_leftovers(const std::string& base) {
  std::error_code error;
  for (fs::directory_iterator e(base, error), end; !error && e != end; e.increment(error)) {
    const std::string path = e->path();
    if (e->path().filename().string().rfind(kPrefix, 0) != 0 || !is_old(path)) continue;
    const int lock = lock_folder(path);
    if (lock < 0) continue;
    remove_leftover(path);
    close(lock);
  }
}

TemporaryFolder::TemporaryFolder() {
  const std::string named = env(Env::tmpdir);
  const std::string base = named.empty() ? "/tmp" : named;
  remove_leftovers(base);
  path_ = base + "/" + kPrefix + "XXXXXX";
  if (!mkdtemp(path_.data()))
    throw EnvError(fmt::format("cannot make a temporary folder '{}': {}", path_,
                               std::error_code(errno, std::generic_category()).message()),
                   "point TMPDIR to a folder with room");
  lock_ = lock_folder(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace tw
