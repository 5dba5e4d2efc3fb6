#include "tw/cli/output.h"

#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tw/tensor/file.h"

namespace tw::cli {

void to_stderr(const std::string& text) { std::fputs(text.c_str(), stderr); }

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
