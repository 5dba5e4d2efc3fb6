#pragma once

#include <cstdint>
#include <string>

#include "tests/emu/pipelines.h"

namespace tw::test {

/// What first_fault() says of a text of a kernel, in a process of its own: for texts that do not
/// compile, crash or never end. Time is that process's own, not that of compilers.
Verdict judged_apart(const std::string& kernel, const std::string& text, const std::string& config,
                     uint64_t seeds);

}  // namespace tw::test
