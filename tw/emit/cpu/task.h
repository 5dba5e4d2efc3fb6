#pragma once

#include <string>
#include <string_view>

#include "tw/emit/cpu/writer.h"
#include "tw/ir/program.h"
#include "tw/target/machine.h"
#include "tw/target/mapping.h"
#include "tw/target/specialisation.h"

namespace tw::cpu {

/// The program with tensors and dims named so that they hide no name of emitted text. Names that
/// begin with a capital stay; `gamma` becomes `gamma_`.
Program with_safe_names(Program p);

/// The instances of a program as C++ text.
struct TaskText {
  std::string prelude;  ///< the types and functions that the task uses, and TwArgs
  std::string task;     ///< the function task(ctx, first, last, scratch); ctx points to TwArgs
  int64_t scratch_bytes = 0;
  bool streams = false;  ///< some stores go around the caches
  bool vnni = false;     ///< it uses AVX512-VNNI
};

/// Text for a program of safe names that cpu_passes() lowered. `abi` declares TwArgs.
TaskText emit_task(const Program& p, const Specialisation& s, const CpuMachine& machine,
                   const Mapping& mapping, bool debug_lines, std::string_view abi);

/// Declares `instances`, the number of points of the grid, from the array `dims`.
void declare_instances(const Program& p, const std::string& dims, Writer& out);

}  // namespace tw::cpu
