#pragma once

#include <string>

#include "tw/ir/program.h"
#include "tw/target/launch_spec.h"
#include "tw/target/machine.h"
#include "tw/target/mapping.h"
#include "tw/target/specialisation.h"

namespace tw {

struct EmittedCpu {
  std::string text;  ///< one self-contained C++ file: no includes, no libm
  LaunchSpec launch;
};

/// What calls of the program are checked against; without an entry.
LaunchSpec launch_spec(const Program& p);

/// C++ text for a program lowered by cpu_passes(). `debug_lines` keeps #line directives to the
/// user's file.
EmittedCpu emit_cpu(const Program& lowered, const Specialisation& s, const CpuMachine& machine,
                    const Mapping& mapping, bool debug_lines = true);

}  // namespace tw
