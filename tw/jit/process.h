#pragma once

#include <string>
#include <vector>

namespace tw {

/// A compile that takes longer has hung.
inline constexpr int kCompileSeconds = 120;

/// How a child process ended.
struct Finished {
  enum class Kind : uint8_t { exited, killed, timed_out, could_not_start };
  Kind kind = Kind::exited;
  int code = 0;        ///< of exited
  std::string reason;  ///< of the others
};

/// Runs command[0] (a path; no shell) with its output and errors in a file, and waits. A process
/// that is not done after `seconds` is killed, and it ends when the calling thread does. It speaks
/// English. Safe beside other threads and after fork.
Finished run_process(const std::vector<std::string>& command, const std::string& output,
                     int seconds);

}  // namespace tw
