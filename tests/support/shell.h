#pragma once

#include <cstdio>
#include <string>
#include <sys/wait.h>

namespace tw {

/// How a call of a shell ended.
struct Ended {
  int code;         ///< -1: by a signal
  std::string out;  ///< its standard output
};

inline Ended shell(const std::string& line) {
  FILE* pipe = popen(line.c_str(), "r");
  std::string out;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

}  // namespace tw
