#include "tw/emit/cpu/writer.h"

#include <cctype>

#include "tw/base/error.h"

namespace tw::cpu {

std::string fill(std::string_view pattern, const Fill& values) {
  std::string out;
  for (size_t i = 0; i < pattern.size();) {
    if (pattern[i] != '$') {
      out += pattern[i++];
      continue;
    }
    size_t end = i + 1;
    const auto part = [&] {
      const unsigned char c = static_cast<unsigned char>(pattern[end]);
      return std::islower(c) || std::isdigit(c);
    };
    if (end < pattern.size() && std::isupper(static_cast<unsigned char>(pattern[end]))) {
      ++end;
    } else {
      while (end < pattern.size() && part()) ++end;
    }
    const std::string_view word = pattern.substr(i + 1, end - i - 1);
    bool found = false;
    for (const auto& [name, value] : values) {
      if (name != word) continue;
      out += value;
      found = true;
      break;
    }
    if (!found) {
      throw InternalError(fmt::format("pattern '{}' has no value for '{}'", pattern, word));
    }
    i = end;
  }
  return out;
}

void Writer::line(std::string_view text) {
  for (size_t begin = 0;;) {
    const size_t end = text.find('\n', begin);
    lines_.push_back({indent_, std::string(text.substr(begin, end - begin))});
    if (end == std::string_view::npos) return;
    begin = end + 1;
  }
}

void Writer::open(std::string_view text) {
  line(text);
  ++indent_;
}

void Writer::close(std::string_view text) {
  --indent_;
  line(text);
}

void Writer::append(const Writer& w) {
  for (const Line& l : w.lines_) lines_.push_back({indent_ + l.indent, l.text});
}

std::string Writer::text() const {
  std::string out;
  for (const Line& l : lines_) {
    const bool directive = !l.text.empty() && l.text[0] == '#';
    if (!l.text.empty() && !directive) out.append(static_cast<size_t>(l.indent) * 2, ' ');
    out += l.text;
    out += '\n';
  }
  return out;
}

}  // namespace tw::cpu
