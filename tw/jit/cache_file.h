#pragma once

#include <optional>
#include <string>

namespace tw {

/// What an entry's file holds.
struct CacheFile {
  std::string object, key, metadata;
};

/// The file's bytes: object first, so that the file itself can be loaded, then key, metadata, and a
/// trailer of fixed length with a mark, the three sizes and the XXH3 of all before it.
std::string pack(const CacheFile& file);

/// Back; nothing when the bytes are not what pack() wrote.
std::optional<CacheFile> unpack(const std::string& bytes);

}  // namespace tw
