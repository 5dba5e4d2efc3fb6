#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tw::cli {

/// Writes to standard error. Never fails: no result is said there.
void to_stderr(const std::string& text);

/// One object a line, to the file, or to standard output when `path` is empty. Throws as
/// write_file() does.
void write_json(const std::string& path, const std::vector<nlohmann::json>& rows);

}  // namespace tw::cli
