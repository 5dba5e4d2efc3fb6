#include "tw/cli/output.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tw/base/error.h"

namespace tw::cli {

void write_json(const std::string& path, const std::vector<nlohmann::json>& rows) {
  std::string text;
  for (const nlohmann::json& row : rows) text += row.dump() + "\n";
  if (path.empty()) {
    fmt::print("{}", text);
    return;
  }
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file)
    throw EnvError(fmt::format("cannot write '{}': {}", path, std::strerror(errno)),
                   "name a file in a folder that exists");
}

}  // namespace tw::cli
