#pragma once

#include <string>

#include "tw/emit/cpu/prelude.h"
#include "tw/ir/program.h"
#include "tw/target/gpu.h"
#include "tw/target/launch_spec.h"
#include "tw/target/mapping.h"
#include "tw/target/specialisation.h"

namespace tw {

struct EmittedCuda {
  std::string text;  ///< one self-contained CUDA C++ file: no includes
  LaunchSpec launch;
};

/// CUDA C++ text for a program lowered by cuda_passes(): any program runs, on any architecture from
/// sm_80 on. `debug_lines` keeps #line directives to the user's file. `kind` emulated: the same
/// program part, with a prelude for the emulator. Throws UserError for what GPUs cannot do.
EmittedCuda emit_cuda(const Program& lowered, const Specialisation& s, const GpuMachine& machine,
                      const Mapping& mapping, bool debug_lines = true,
                      cpu::Thread kind = cpu::Thread::cuda);

/// The same with a kernel of that name.
EmittedCuda emit_cuda_as(const std::string& entry, const Program& lowered, const Specialisation& s,
                         const GpuMachine& machine, const Mapping& mapping, bool debug_lines,
                         cpu::Thread kind);

/// How many blocks a grid has at most: each does several instances where there are more. With
/// workspace no more are started than run at once.
int64_t most_blocks(const LaunchSpec& l, const GpuMachine& m);

}  // namespace tw
