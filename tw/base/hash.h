#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tw {

/// 128-bit XXH3 of the bytes as 32 lower-case hex digits: names of cache entries, checksums. Not
/// cryptographic.
std::string hash_hex(std::string_view bytes);

/// 64-bit XXH3.
uint64_t hash64(std::string_view bytes);

}  // namespace tw
