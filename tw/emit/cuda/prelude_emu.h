#pragma once

namespace tw::cuda {

/// What emulated text begins with: CUDA's keywords as empty macros, the table `tw_emu` that the
/// emulator fills in (tw/emu/abi.h must agree), and the functions by which instrumented accesses to
/// memory arrive there.
extern const char* const kEmulatedHead;

}  // namespace tw::cuda
