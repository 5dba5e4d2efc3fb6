#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tw::cli {

/// Rows of times (bench/schema.json) in a file, one a line, or in the *.json and *.jsonl files of a
/// folder and those in it, sorted by name. Rows of other kinds, which have no time_us, are left
/// out. Throws EnvError for what cannot be read, UserError that names file and line of what is no
/// JSON.
std::vector<nlohmann::json> rows_in(const std::string& path);

/// What a row was measured of: suite, kernel, shape, .. on which device. Rows of one key are
/// measurements of the same.
std::string key_of(const nlohmann::json& row);

}  // namespace tw::cli
