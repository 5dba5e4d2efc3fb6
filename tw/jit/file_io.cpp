#include "tw/jit/file_io.h"

#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return fd_; }

 private:
  int fd_;
};

/// 0 or an errno.
int write_all(int file, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno != EINTR) return errno;
    if (n > 0) done += static_cast<size_t>(n);
  }
  return 0;
}

/// For file systems without nameless files. A process that is killed here leaves the file.
int publish_by_rename(const std::string& path, const std::string& bytes) {
  std::string temporary = path + ".XXXXXX";
  const Descriptor file(mkostemp(temporary.data(), O_CLOEXEC));
  if (file < 0) return errno;
  int error = write_all(file, bytes);
  if (!error && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error) unlink(temporary.c_str());
  return error;
}

}  // namespace

std::optional<std::string> read_own_file(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat s;
  if (file < 0 || fstat(file, &s) != 0 || !S_ISREG(s.st_mode)) return std::nullopt;
  if (s.st_uid != geteuid() && s.st_uid != 0) return std::nullopt;
  std::string bytes(static_cast<size_t>(s.st_size), '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = read(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    done += static_cast<size_t>(n);
  }
  return bytes;
}

int publish_file(const std::string& path, const std::string& bytes) {
  const std::string folder = std::filesystem::path(path).parent_path();
  const Descriptor file(open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (file < 0) {
    const bool lacking = errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL;
    return lacking ? publish_by_rename(path, bytes) : errno;
  }
  if (const int error = write_all(file, bytes)) return error;
  const std::string self = fmt::format("/proc/self/fd/{}", static_cast<int>(file));
  if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) return 0;
  if (errno == EEXIST) return 0;
  return errno == ENOENT ? publish_by_rename(path, bytes) : errno;  // no /proc
}

void touch(const std::string& path) {
  struct stat s;
  // An hour is fine enough for choosing what to drop, and saves a write at most uses.
  if (stat(path.c_str(), &s) == 0 && time(nullptr) - s.st_mtim.tv_sec > 3600) {
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  }
}

}  // namespace tw
