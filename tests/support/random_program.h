#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tw/ir/program.h"
#include "tw/tensor/tensor.h"

#include "tests/support/guarded.h"

namespace tw::test {

/// How a tensor of a random program lies in memory.
enum class Layout : uint8_t { contiguous, transposed, gaps, reversed, repeated, shifted };
/// What its elements are.
enum class Fill : uint8_t { small_integers, normal, positive, wide, bits };

struct TensorSpec {
  DType dtype = f32;
  std::vector<int64_t> dims;
  Layout layout = Layout::contiguous;
  Fill fill = Fill::normal;
  int special_one_in = 0;  ///< NaN, infinities, -0, subnormals, largest at this rate; 0: none
  uint64_t seed = 0;
};

/// A valid program over all of ops.def, its instances free of conflicts, and tensors to run it on.
struct RandomProgram {
  uint64_t seed = 0;
  Program program;
  std::vector<std::pair<std::string, int64_t>> dims;  ///< of every Program::dims entry
  std::vector<TensorSpec> tensors;                    ///< in declaration order of the parameters
  bool special_free = false;                          ///< no special values in the data
};

/// The same program for the same seed everywhere.
RandomProgram random_program(uint64_t seed);

/// Removes ops whose results nobody uses and that write nothing, and values left without a
/// definition. The meaning stays.
void drop_dead(Program& p);

/// Tensors of a program, all filled (outputs too: what is not stored must stay), and as a launch
/// wants them.
struct Arguments {
  std::vector<Guarded> tensors;
  std::vector<TensorView> inputs, outputs;
};
Arguments arguments(const RandomProgram& r);

}  // namespace tw::test
