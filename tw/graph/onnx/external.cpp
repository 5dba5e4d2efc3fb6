#include "tw/graph/onnx/external.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/tensor/file.h"

namespace tw::graph::onnx {

namespace fs = std::filesystem;

namespace {

/// A descriptor that closes itself.
struct Opened {
  explicit Opened(const std::string& path)
      : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {}
  ~Opened() {
    if (fd >= 0) close(fd);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  int fd;
};

bool stays_inside(const fs::path& p) {
  return p.is_relative() && !p.empty() && p.native().find('\0') == std::string::npos &&
         std::none_of(p.begin(), p.end(), [](const fs::path& part) { return part == ".."; });
}

bool lies_in(const fs::path& folder, const fs::path& file) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
         folder.end();
}

Bytes map_file(const std::string& what, const std::string& path) {
  const Opened file(path);
  if (file.fd < 0) fail_file(fmt::format("{}: cannot read '{}'", what, path), errno);
  struct stat there;
  if (fstat(file.fd, &there) != 0)
    fail_file(fmt::format("{}: cannot read '{}'", what, path), errno);
  if (!S_ISREG(there.st_mode)) throw UserError(fmt::format("{}: '{}' is no file", what, path));
  const auto size = static_cast<size_t>(there.st_size);
  if (size == 0) return {};
  void* at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (at == MAP_FAILED) fail_file(fmt::format("{}: cannot map '{}'", what, path), errno);
  return {{static_cast<const char*>(at), size},
          std::shared_ptr<void>(at, [size](void* p) { munmap(p, size); })};
}

}  // namespace

ExternalFiles::ExternalFiles(const std::string& model_path)
    : folder_(fs::path(model_path).parent_path().string()) {
  if (folder_.empty()) folder_ = ".";
}

const Bytes& ExternalFiles::mapped(const std::string& title, const std::string& location) {
  if (const auto at = files_.find(location); at != files_.end()) return at->second;
  const std::string what = fmt::format("external data of {}", title);
  if (!stays_inside(location))
    throw UserError(fmt::format("{} is at '{}'", what, location),
                    "wanted a path inside the model's folder, without '..'");
  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error);
  if (error) fail_file(fmt::format("{}: cannot resolve '{}'", what, folder_), error.value());
  const fs::path file = fs::canonical(folder / location, error);
  if (error)
    fail_file(fmt::format("{}: cannot read '{}'", what, (fs::path(folder_) / location).string()),
              error.value());
  if (!lies_in(folder, file))
    throw UserError(fmt::format("{} is at '{}', a link out of the model's folder", what, location),
                    "put the file itself beside the model");
  return files_.emplace(location, map_file(what, file.string())).first->second;
}

Bytes ExternalFiles::part(const std::string& title, const std::string& location, int64_t offset,
                          int64_t length) {
  const Bytes& file = mapped(title, location);
  const auto size = static_cast<int64_t>(file.bytes.size());
  if (offset < 0 || offset > size || length < 0 || length > size - offset)
    throw UserError(
        fmt::format("external data of {} has {} bytes from {} on, but '{}' has {} bytes", title,
                    length, offset, location, size));
  return {file.bytes.substr(static_cast<size_t>(offset), static_cast<size_t>(length)), file.owner};
}

}  // namespace tw::graph::onnx
