#include "tw/cli/rows.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

#include "tw/base/error.h"

namespace tw::cli {

using nlohmann::json;
namespace fs = std::filesystem;

static std::vector<fs::path> row_files(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(path, error))
    if (entry.path().extension() == ".json" || entry.path().extension() == ".jsonl")
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

static void add_rows(const fs::path& file, std::vector<json>& rows) {
  std::ifstream in(file);
  if (!in) throw EnvError(fmt::format("cannot read '{}'", file.string()));
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    json row = json::parse(line, nullptr, false);
    if (row.is_discarded())
      throw UserError(fmt::format("{}:{}: no JSON", file.string(), number),
                      "wanted one row a line, as bench --json writes them");
    if (row.is_object() && row.contains("time_us")) rows.push_back(std::move(row));
  }
}

std::vector<json> rows_in(const std::string& path) {
  std::vector<json> rows;
  for (const fs::path& file : row_files(path)) add_rows(file, rows);
  return rows;
}

std::string key_of(const json& row) {
  std::string key;
  for (const char* field :
       {"device", "suite", "kernel", "shape", "dtype", "threads", "cache", "launch", "peer"}) {
    if (!row.contains(field)) continue;
    const json& v = row[field];
    key += (key.empty() ? "" : "; ") + (v.is_string() ? v.get<std::string>() : v.dump());
  }
  return key;
}

}  // namespace tw::cli
