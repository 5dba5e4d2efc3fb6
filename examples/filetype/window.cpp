#include "examples/filetype/window.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

#include "tw/base/error.h"

namespace filetype {

using tw::UserError;

namespace {

constexpr std::string_view kSpace = " \t\n\r\v\f";

UserError unreadable(const std::string& path) {
  return UserError(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path) {
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) throw unreadable(path);
    size_ = lseek(fd_, 0, SEEK_END);
    if (size_ < 0) fail();
  }
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int64_t size() const { return size_; }

  /// Fewer bytes where the file has become shorter.
  std::string read(int64_t offset, int64_t count) {
    std::string bytes(static_cast<size_t>(count), '\0');
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = pread(fd_, bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(offset) + static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail();
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    bytes.resize(done);
    return bytes;
  }

 private:
  [[noreturn]] void fail() {
    const UserError error = unreadable(path_);
    close(fd_);
    fd_ = -1;
    throw error;
  }

  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0;
};

bool is_continuation(std::string_view s, size_t at) {
  return at < s.size() && (static_cast<uint8_t>(s[at]) & 0xc0) == 0x80;
}

/// Bytes of the character at `at`; 0 where there is none. The least and largest second byte of a
/// lead keep out long forms, surrogates and what lies above U+10FFFF.
size_t utf8_length(std::string_view s, size_t at) {
  const auto lead = static_cast<uint8_t>(s[at]);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (size_t i = 1; i < length; ++i)
    if (!is_continuation(s, at + i)) return 0;
  const auto second = static_cast<uint8_t>(s[at + 1]);
  const bool low = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool high = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
  return low || high ? 0 : length;
}

Content text_or_bytes(std::string_view s) {
  for (size_t at = 0; at < s.size();) {
    const size_t length = utf8_length(s, at);
    if (length == 0) return Content::bytes;
    at += length;
  }
  return Content::text;
}

std::string_view without_leading_space(std::string_view s) {
  return s.substr(std::min(s.find_first_not_of(kSpace), s.size()));
}

std::string_view without_trailing_space(std::string_view s) {
  return s.substr(0, s.find_last_not_of(kSpace) + 1);
}

int32_t number_of(char c) { return static_cast<uint8_t>(c); }

}  // namespace

Content read_window(const std::string& path, const WindowSizes& sizes, std::span<int32_t> window) {
  OpenFile file(path);
  if (file.size() == 0) return Content::empty;
  const int64_t block = std::min(sizes.block_size, file.size());
  const std::string first = file.read(0, block);
  if (file.size() < sizes.least) return text_or_bytes(first);
  const std::string_view begin = without_leading_space(first);
  if (std::ssize(begin) < sizes.least) return text_or_bytes(first);

  const std::string last = file.read(file.size() - block, block);
  const std::string_view end = without_trailing_space(last);
  const auto beg_count = static_cast<size_t>(std::min<int64_t>(sizes.beg_size, std::ssize(begin)));
  const auto end_count = static_cast<size_t>(std::min<int64_t>(sizes.end_size, std::ssize(end)));
  std::ranges::fill(window, sizes.padding);
  std::ranges::transform(begin.substr(0, beg_count), window.begin(), number_of);
  std::ranges::transform(end.substr(end.size() - end_count),
                         window.end() - static_cast<int64_t>(end_count), number_of);
  return Content::window;
}

}  // namespace filetype
