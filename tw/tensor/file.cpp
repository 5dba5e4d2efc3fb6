#include "tw/tensor/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "tw/base/error.h"

namespace tw {

void fail_file(const std::string& what, int error, const std::string& hint) {
  const std::string message = fmt::format("{}: {}", what, std::strerror(error));
  for (int of_user : {ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, EROFS, ELOOP, ENAMETOOLONG}) {
    if (error == of_user) throw UserError(message, hint);
  }
  throw EnvError(message, hint);
}

[[noreturn]] static void fail(const std::string& path, int error) {
  const bool no_folder = error == ENOENT || error == ENOTDIR;
  fail_file(fmt::format("cannot write '{}'", path), error,
            no_folder ? "name a file in a folder that exists" : "");
}

/// 0 or an errno.
static int write_parts(const std::string& path, const char* how,
                       const std::vector<std::string_view>& parts) {
  std::FILE* file = std::fopen(path.c_str(), how);
  if (!file) return errno;
  int error = 0;
  for (std::string_view part : parts)
    if (!error && std::fwrite(part.data(), 1, part.size(), file) != part.size()) error = errno;
  if (std::fclose(file) != 0 && !error) error = errno;
  return error;
}

/// 0 or an errno.
static int write_beside_and_rename(const std::string& path,
                                   const std::vector<std::string_view>& parts, mode_t* mode) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  int error = write_parts(temporary, "wbx", parts);
  if (error == EEXIST) return error;
  if (!error && mode && chmod(temporary.c_str(), *mode & 0777) != 0) error = errno;
  if (!error && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error) unlink(temporary.c_str());
  return error;
}

void write_file(const std::string& path, const std::vector<std::string_view>& parts) {
  struct stat there;
  int error;
  if (stat(path.c_str(), &there) != 0) {
    error = write_beside_and_rename(path, parts, nullptr);
  } else if (S_ISREG(there.st_mode)) {
    // What a link names is replaced, not the link.
    std::error_code unresolved;
    const std::string file = std::filesystem::canonical(path, unresolved).string();
    error = unresolved ? unresolved.value() : write_beside_and_rename(file, parts, &there.st_mode);
  } else {
    error = write_parts(path, "wb", parts);
  }
  if (error) fail(path, error);
}

void expect_writable(const std::string& path) {
  struct stat there;
  if (stat(path.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) fail(path, EISDIR);
    if (access(path.c_str(), W_OK) != 0) fail(path, errno);
    return;
  }
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  // The slash at the end refuses a file that stands where the folder should.
  if (path.empty() || access((folder / "").c_str(), W_OK | X_OK) != 0)
    fail(path, path.empty() ? ENOENT : errno);
}

}  // namespace tw
