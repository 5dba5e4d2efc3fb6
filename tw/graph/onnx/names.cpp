#include "tw/graph/onnx/names.h"

#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"

namespace tw::graph::onnx {

namespace {

constexpr size_t kMostNameBytes = 4096;

/// Bytes of the character at the front of `text`, by its first byte; 0: it is none.
size_t character_bytes(unsigned char first) {
  if (first < 0x20 || first == 0x7f) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  if (first >= 0xf0 && first < 0xf5) return 4;
  return 0;
}

/// Whether the bytes of a longer character encode one that exists, and not in more bytes than it
/// needs.
bool is_character(std::string_view c) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(c[i]); };
  for (size_t i = 1; i < c.size(); ++i)
    if (byte(i) < 0x80 || byte(i) > 0xbf) return false;
  if (c.size() == 2) return byte(0) > 0xc2 || byte(1) > 0x9f;  // C1 controls
  if (byte(0) == 0xe0) return byte(1) >= 0xa0;
  if (byte(0) == 0xed) return byte(1) <= 0x9f;
  if (byte(0) == 0xf0) return byte(1) >= 0x90;
  if (byte(0) == 0xf4) return byte(1) <= 0x8f;
  return true;
}

/// Bytes of the character at `at`; 0: it is none that a line can hold.
size_t next_character(const std::string& text, size_t at) {
  const size_t n = character_bytes(static_cast<unsigned char>(text[at]));
  if (n == 0 || at + n > text.size()) return 0;
  return n == 1 || is_character(std::string_view(text).substr(at, n)) ? n : 0;
}

}  // namespace

std::string printable(const std::string& text) {
  std::string all;
  for (size_t at = 0; at < text.size() && all.size() < 200;) {
    const size_t n = next_character(text, at);
    all += n > 0 ? text.substr(at, n) : "?";
    at += std::max<size_t>(n, 1);
  }
  return all;
}

std::string checked_name(const std::string& name, const std::string& what) {
  for (size_t at = 0; at < name.size();) {
    const size_t n = next_character(name, at);
    if (n == 0 || name.size() > kMostNameBytes)
      throw UserError(
          fmt::format("{} has the name '{}'", what, printable(name)),
          fmt::format("wanted UTF-8 without control characters, at most {} bytes", kMostNameBytes));
    at += n;
  }
  return name;
}

}  // namespace tw::graph::onnx
