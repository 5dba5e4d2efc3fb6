#pragma once

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "tw/jit/cache.h"
#include "tw/jit/compiler.h"

#include "tests/jit/scale.h"

namespace tw::test {

/// A shared object whose function number() returns 42, compiled once.
inline const std::string& object() {
  static const std::string bytes =
      compile_shared(find_compiler(), machine_named("generic"),
                     "extern \"C\" __attribute__((visibility(\"default\"))) int number() "
                     "{ return 42; }\n",
                     false);
  return bytes;
}

inline int number(const Cache::Loaded& loaded) {
  return reinterpret_cast<int (*)()>(loaded.module->symbol("number"))();
}

inline std::string read(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}

inline void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Lines of warning that body() writes to stderr.
template <class F>
std::vector<std::string> warnings(F&& body) {
  testing::internal::CaptureStderr();
  body();
  std::istringstream text(testing::internal::GetCapturedStderr());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (line.find("warning") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

/// What comes out of a pipe; closes it.
inline std::string read_all(int pipe) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(pipe, buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  close(pipe);
  return text;
}

/// Runs in a child as the user nobody when we are the superuser, whom permissions do not stop.
/// Returns what the child wrote to stderr; its code must be 0.
template <class F>
std::string unprivileged(F&& body) {
  int out[2];
  EXPECT_EQ(pipe(out), 0);
  const pid_t child = start_child([&] {
    dup2(out[1], STDERR_FILENO);
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 98;
    return body();
  });
  close(out[1]);
  const std::string text = read_all(out[0]);
  EXPECT_EQ(end_of(child), 0) << text;
  return text;
}

}  // namespace tw::test
