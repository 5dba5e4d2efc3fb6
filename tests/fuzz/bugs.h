#pragma once

#include <vector>

#include "tests/fuzz/native.h"

namespace tw::test {

/// A plausible miscompilation, planted between a program and its kernel from outside: the compiler
/// itself holds no switch for it.
struct Bug {
  const char* name;
  Hooks hooks;
};

/// Wrong rewrites of the program, as a pass would make them.
std::vector<Bug> program_bugs();
/// Wrong text, and wrong assumptions of a variant.
std::vector<Bug> text_bugs();

}  // namespace tw::test
