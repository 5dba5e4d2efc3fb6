#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tw/emit/cpu/prelude.h"

namespace tw::test {

/// A function of the prelude at one lane, as text for one thread of a GPU or of its emulator, with
/// arguments and what it must give. Elements are bits in 8 bytes, the low ones counting.
struct ThreadCase {
  std::string name;                                   ///< of the kernel too: "max_f32"
  std::string function;                               ///< of the prelude
  DType dtype = f32;                                  ///< for which the prelude is asked
  std::vector<std::string> operands;                  ///< types in C++
  std::string result;                                 ///< type in C++
  std::string more = {};                              ///< further arguments of the call, as text
  std::vector<std::vector<uint64_t>> arguments = {};  ///< one list per operand, equally long
  /// Whether a result is right, given the arguments' bits.
  std::function<bool(const std::vector<uint64_t>& in, uint64_t out)> right = {};
};

/// Whether CUDA's text is another than the emulator's: builtin functions and instructions that
/// nothing but a GPU can check.
bool only_on_gpu(const ThreadCase& c);

/// Groups of cases, each fit for one translation unit.
struct ThreadGroup {
  std::string name;
  std::vector<ThreadCase> cases;
};
std::vector<ThreadGroup> thread_groups();
/// Functions of several operations of the language.
ThreadGroup fused_group();

/// One translation unit of kernels `<name>(const u64* a, const u64* b, u64* out, i64 n)`: of CUDA
/// for a grid of any size, of the emulator as functions.
std::string thread_text(const ThreadGroup& group, cpu::Thread kind);

/// How many results are wrong, and a line about the first.
std::string wrong_results(const ThreadCase& c, const std::vector<uint64_t>& out);

}  // namespace tw::test
