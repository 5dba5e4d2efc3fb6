#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tw {

/// Throws for a file that a user named and an errno that it gave: UserError when nothing of that
/// name can be opened, EnvError when the machine failed, e.g. a full disk.
[[noreturn]] void fail_file(const std::string& what, int error, const std::string& hint = "");

/// Writes the parts as one file, whole or not at all: beside `path` and renamed. Devices and pipes
/// are written in place. Throws as fail_file() does when it cannot.
void write_file(const std::string& path, const std::vector<std::string_view>& parts);

/// Throws write_file()'s error where a file can be seen to be impossible: a folder that is missing
/// or closed to us, or a path that is a folder.
void expect_writable(const std::string& path);

}  // namespace tw
