#include "tw/cli/rows.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <span>

#include "tw/base/error.h"
#include "tw/tensor/file.h"

namespace tw::cli {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// What a field of a row must be.
struct Field {
  const char* name;
  bool needed;
  const char* wanted;
  bool (*fits)(const json&);
};

bool is_text(const json& v) { return v.is_string(); }
bool is_count(const json& v) { return v.is_number_integer() && v >= 1; }
bool is_rate(const json& v) { return v.is_number() && v >= 0; }
bool is_above_0(const json& v) { return v.is_number() && v > 0; }
bool is_interval(const json& v) {
  return v.is_array() && v.size() == 2 && is_rate(v[0]) && is_rate(v[1]) && v[0] <= v[1];
}

constexpr const char* kAbove0 = "a number above 0";
constexpr const char* kInterval = "[low, high] with 0 <= low <= high";

/// What is read of rows; tools/check_rows.py has more to say of those that are committed.
constexpr Field kFields[] = {
    {"kernel", true, "a text", is_text},
    {"shape", true, "a text", is_text},
    {"dtype", true, "a text", is_text},
    {"device", true, "a text", is_text},
    {"time_us", true, kAbove0, is_above_0},
    {"verified", true, "true: times of results that nothing verified say nothing",
     [](const json& v) { return v == true; }},
    {"suite", false, "a text", is_text},
    {"program", false, "a text", is_text},
    {"cache", false, "a text", is_text},
    {"launch", false, "a text", is_text},
    {"peer", false, "a text", is_text},
    {"date", false, "a text", is_text},
    {"commit", false, "a text", is_text},
    {"threads", false, "a whole number from 1", is_count},
    {"time_ci95", false, kInterval, is_interval},
    {"limit_us", false, "a number from 0", is_rate},
    {"fraction", false, "a number from 0", is_rate},
};
constexpr Field kBesidePeer[] = {
    {"ratio", true, kAbove0, is_above_0},
    {"ci95", true, kInterval, is_interval},
};
constexpr Field kAlone[] = {{"ceiling_fraction", true, kAbove0, is_above_0}};

/// Throws UserError for the first of the fields that is wrong; `where` is file and line.
void expect_fields(const json& row, std::span<const Field> fields, const std::string& where) {
  for (const Field& f : fields) {
    const auto found = row.find(f.name);
    if (found == row.end() && f.needed)
      throw UserError(fmt::format("{}: the row lacks '{}'", where, f.name),
                      fmt::format("wanted {}, as bench --json writes it", f.wanted));
    if (found != row.end() && !f.fits(*found))
      throw UserError(fmt::format("{}: '{}' is {}", where, f.name, found->dump()),
                      fmt::format("wanted {}", f.wanted));
  }
}

/// Rows of checks have none of these.
bool is_of_times(const json& row) {
  return std::ranges::any_of(
      std::initializer_list<const char*>{"time_us", "time_ci95", "peer_us", "ceiling_fraction"},
      [&](const char* field) { return row.contains(field); });
}

/// The row of a line; nothing for an object of another kind.
std::optional<json> row_in(const std::string& line, const std::string& where) {
  constexpr const char* kWanted = "wanted one row a line, as bench --json writes them";
  json row = json::parse(line, nullptr, false);
  if (row.is_discarded()) throw UserError(where + ": no JSON", kWanted);
  if (!row.is_object()) throw UserError(where + ": no row, which is an object", kWanted);
  if (!is_of_times(row)) return std::nullopt;
  expect_fields(row, kFields, where);
  if (row.value("peer", "").empty())
    expect_fields(row, kAlone, where);
  else
    expect_fields(row, kBesidePeer, where);
  return row;
}

[[noreturn]] void fail_read(const std::string& flag, const fs::path& path, int error) {
  fail_file(fmt::format("{}: cannot read '{}'", flag, path.string()), error,
            "name a file or a folder of rows, as bench --json writes them");
}

std::vector<fs::path> row_files(const std::string& flag, const std::string& path) {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (!fs::exists(there)) fail_read(flag, path, error ? error.value() : ENOENT);
  if (fs::is_regular_file(there) || fs::is_fifo(there)) return {path};
  if (!fs::is_directory(there)) fail_read(flag, path, EPERM);
  std::vector<fs::path> files;
  for (auto at = fs::recursive_directory_iterator(path, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const fs::path extension = at->path().extension();
    if ((extension == ".json" || extension == ".jsonl") && !at->is_directory())
      files.push_back(at->path());
  }
  if (error) fail_read(flag, path, error.value());
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::vector<json> rows_in(const std::string& flag, const std::string& path) {
  std::vector<json> rows;
  for (const fs::path& file : row_files(flag, path)) {
    std::ifstream in(file);
    if (!in) fail_read(flag, file, errno);
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      if (auto row = row_in(line, fmt::format("{}:{}", file.string(), number)))
        rows.push_back(std::move(*row));
    }
  }
  return rows;
}

std::vector<json> rows_of(const std::string& flag, const std::vector<std::string>& paths) {
  std::vector<json> rows;
  for (const std::string& path : paths) {
    const std::vector<json> found = rows_in(flag, path);
    if (found.empty())
      throw UserError(fmt::format("{}: got '{}', in which there is no row of times", flag, path),
                      "wanted rows as bench --json writes them");
    std::ranges::copy(found, std::back_inserter(rows));
  }
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
