#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tw {

/// Seconds; 0: no limit.
struct ApartLimits {
  int cpu = 0;      ///< of the process itself, not of those that it starts
  int silence = 0;  ///< without a word
};

/// What became of work in a process of its own.
struct Apart {
  std::string told;     ///< all that it said
  bool ended = false;   ///< the work came to its end, without an exception
  bool silent = false;  ///< it was silent for too long
  bool late = false;    ///< it used its time up
  int signal = 0;       ///< that ended the process; 0: none did
};

/// Runs the work in a child of this process: what crashes or never ends ends there. The work tells
/// what it finds; nothing else comes back. The child leaves no core and ends with its parent.
/// Throws EnvError when there is no process to be had.
Apart run_apart(const std::function<void(const std::function<void(std::string_view)>& tell)>& work,
                const ApartLimits& limits);

}  // namespace tw
