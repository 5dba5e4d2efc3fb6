#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tw/emit/cpu/prelude.h"

namespace tw::cuda {

/// What emitted text calls for anything that is no plain C++: numbers of threads and blocks,
/// barriers, shuffles, atomics, matrix instructions. One meaning, two texts.
struct ThreadFunction {
  std::string name;  ///< as text calls it, e.g. "tw_sync"
  std::string uses;  ///< names of functions that its texts call, with spaces between
  std::string cuda;
  std::string emulated;
};

/// Every function's name, in the order of the text.
std::vector<std::string> thread_function_names();

/// Types of numbers and the functions asked for, with what they use. Throws InternalError for a
/// name that is none.
std::string thread_prelude(const std::set<std::string>& used, cpu::Thread kind);

/// The parts of the table.
std::vector<ThreadFunction> warp_functions();
std::vector<ThreadFunction> matrix_functions();
std::vector<ThreadFunction> atomic_functions();
std::vector<ThreadFunction> hopper_functions();
std::vector<ThreadFunction> tma_functions();
std::vector<ThreadFunction> wgmma_functions();
std::vector<ThreadFunction> message_functions();

}  // namespace tw::cuda
