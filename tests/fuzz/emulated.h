#pragma once

#include "tests/support/random_program.h"

namespace tw::test {

/// Runs the program as CUDA text in the emulator: thrown reports are faults of the text.
void run_emulated(const RandomProgram& r, const Arguments& a);
/// That text.
std::string emulated_text(const RandomProgram& r, const Arguments& a);

}  // namespace tw::test
