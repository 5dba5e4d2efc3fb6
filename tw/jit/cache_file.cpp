#include "tw/jit/cache_file.h"

#include <charconv>
#include <fmt/format.h>

#include "tw/base/hash.h"

namespace tw {

namespace {

constexpr std::string_view kMark = "\ntilewright1";
constexpr size_t kSizes = 3 * 17, kHash = 33, kTrailer = kMark.size() + kSizes + kHash + 1;

bool hex(std::string_view text, size_t& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string pack(const CacheFile& f) {
  std::string bytes = f.object + f.key + f.metadata;
  bytes += fmt::format("{} {:016x} {:016x} {:016x}", kMark, f.object.size(), f.key.size(),
                       f.metadata.size());
  bytes += " " + hash_hex(bytes) + "\n";
  return bytes;
}

std::optional<CacheFile> unpack(const std::string& bytes) {
  if (bytes.size() < kTrailer) return std::nullopt;
  const std::string_view all(bytes), trailer = all.substr(bytes.size() - kTrailer);
  if (trailer.substr(0, kMark.size()) != kMark || trailer.back() != '\n') return std::nullopt;
  const std::string_view hash = trailer.substr(kTrailer - kHash, 32);
  if (trailer[kTrailer - kHash - 1] != ' ') return std::nullopt;
  if (hash_hex(all.substr(0, bytes.size() - kHash - 1)) != hash) return std::nullopt;
  size_t size[3];
  for (int i = 0; i < 3; ++i) {
    if (!hex(trailer.substr(kMark.size() + 17 * i + 1, 16), size[i])) return std::nullopt;
  }
  if (size[0] + size[1] + size[2] != bytes.size() - kTrailer) return std::nullopt;
  return CacheFile{bytes.substr(0, size[0]), bytes.substr(size[0], size[1]),
                   bytes.substr(size[0] + size[1], size[2])};
}

}  // namespace tw
