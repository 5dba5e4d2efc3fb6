#pragma once

#include <string>
#include <vector>

#include "tw/emit/cpu/eject.h"
#include "tw/ir/program.h"
#include "tw/target/machine.h"
#include "tw/target/mapping.h"
#include "tw/tensor/tensor.h"

namespace tw::test {

/// The isa "avx512" without AVX512-VNNI.
inline const std::string kNoVnni = "avx512 without vnni";
/// The named machine of an isa, or of kNoVnni.
CpuMachine machine_for(const std::string& isa);

/// Lowers, emits, compiles with the compiler TW_CXX (g++ when empty) and runs a program given as
/// ir text on tensors in declaration order, serially. Dims are read off the tensors; `dims` gives
/// those that no tensor has. Instances run in ranges of 3, each with its own poisoned scratch.
/// `level`: of the compiler's optimisation; -Og takes half the time where many texts differ little.
void run_text(const std::string& ir, const std::vector<TensorView>& tensors,
              const std::string& isa = "avx512",
              const std::vector<std::pair<std::string, int64_t>>& dims = {},
              const Mapping& mapping = {}, const char* level = "-O2");

/// Runs instances [first, last) only, of a grid too large to run here: the tensors need memory
/// only where these reach.
void run_instances(const std::string& ir, const std::vector<TensorView>& tensors,
                   const std::string& isa, int64_t first, int64_t last);

/// The dims with which tasks of a program on packed tensors would run, the chosen ones last;
/// nothing runs.
std::vector<int64_t> dims_chosen(const std::string& ir, const std::vector<int64_t>& dims,
                                 int threads);

/// The emitted text for such tensors.
std::string text_for(const std::string& ir, const std::vector<TensorView>& tensors,
                     const std::string& isa);

/// The files kernel.h and kernel.cpp for such tensors.
Ejected ejected_for(const std::string& ir, const std::vector<TensorView>& tensors,
                    const std::string& isa);

/// The ISAs of the emitter's table that this machine can run.
std::vector<std::string> runnable_isas();

}  // namespace tw::test
