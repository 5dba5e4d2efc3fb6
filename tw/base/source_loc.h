#pragma once

namespace tw {

/// A place in user code. Built on the two builtins that g++ >= 9 and clang >= 9 share:
/// std::source_location is missing from clang 14 on libstdc++ 12. Taken as a default argument it
/// names the caller's line.
struct SourceLoc {
  const char* file =
      "?";            ///< lives as long as the process (a literal, or interned by the ir parser)
  unsigned line = 0;  ///< 0: unknown
  static constexpr SourceLoc here(const char* f = __builtin_FILE(), unsigned l = __builtin_LINE()) {
    return {f, l};
  }
  bool known() const { return line != 0; }
};

}  // namespace tw
