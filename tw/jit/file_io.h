#pragma once

#include <optional>
#include <string>

namespace tw {

/// All bytes of a regular file that belongs to this user or the superuser; nothing otherwise.
/// Waits for nobody: a pipe in its place is no file.
std::optional<std::string> read_own_file(const std::string& path);

/// Makes `path` a file of these bytes, whole or not at all: other processes never see a part, and a
/// process that dies leaves nothing. A file that is already there stays as it is. Returns 0 or an
/// errno. Nothing is flushed to the disk: readers check what they read.
int publish_file(const std::string& path, const std::string& bytes);

/// Marks the file as used now.
void touch(const std::string& path);

}  // namespace tw
