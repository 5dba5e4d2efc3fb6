#include "tw/cli/output.h"

#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tw/tensor/file.h"

namespace tw::cli {

void to_stderr(const std::string& text) { std::fputs(text.c_str(), stderr); }

void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO)) to_stderr(fmt::format("\r{:70}\r{}", "", text));
}

bool shows_text(const Arguments& a) { return !a.json || !a.json->empty(); }

void say(const std::string& text, const Arguments& a) {
  if (shows_text(a))
    fmt::print("{}", text);
  else
    to_stderr(text);
}

void write_json(const std::string& path, const std::vector<nlohmann::json>& rows) {
  std::string text;
  for (const nlohmann::json& row : rows) text += row.dump() + "\n";
  if (path.empty()) {
    fmt::print("{}", text);
    return;
  }
  write_file(path, {text});
}

}  // namespace tw::cli
