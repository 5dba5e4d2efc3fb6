#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tw/cli/verb.h"

namespace tw::cli {

/// Writes to standard error. Never fails: no result is said there.
void to_stderr(const std::string& text);

/// How far it is, on one line of a terminal that is written over.
void show_progress(const std::string& text);

/// Whether text may go to standard output: the rows of --json do not.
bool shows_text(const Arguments& a);

/// For people, where JSON does not take standard output.
void say(const std::string& text, const Arguments& a);

/// One object a line, to the file, or to standard output when `path` is empty. Throws as
/// write_file() does.
void write_json(const std::string& path, const std::vector<nlohmann::json>& rows);

}  // namespace tw::cli
