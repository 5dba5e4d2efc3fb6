#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tw::cli {

/// Rows of times (bench/schema.json) in a file, one a line, or in the *.json and *.jsonl files of a
/// folder and those in it, sorted by name. Objects of other kinds, which have no time, are left
/// out. Throws UserError that names `flag`, which named the path, and why it cannot be read; or
/// file, line and field of a row that is malformed or was not verified.
std::vector<nlohmann::json> rows_in(const std::string& flag, const std::string& path);

/// Those of all paths. UserError for a path without any.
std::vector<nlohmann::json> rows_of(const std::string& flag, const std::vector<std::string>& paths);

/// What a row was measured of: suite, kernel, shape, .. on which device. Rows of one key are
/// measurements of the same.
std::string key_of(const nlohmann::json& row);

}  // namespace tw::cli
