#pragma once

#include <span>
#include <string>

#include "tw/ir/program.h"
#include "tw/passes/canonicalize.h"
#include "tw/target/machine.h"
#include "tw/target/mapping.h"
#include "tw/target/specialisation.h"

namespace tw {

/// What passes may look at beside the program.
struct PassContext {
  const CpuMachine& machine;
  const Mapping& mapping;
  const Specialisation& specialisation;
};

struct Pass {
  const char* name;
  void (*run)(Program& p, const PassContext& context);
};

/// The facts of contiguous tensors, of any address and size.
Specialisation contiguous_facts(const Program& p);

/// The list that lowers canonical ir for a CPU; pipeline.cpp says why the order is what it is.
std::span<const Pass> cpu_passes();
/// The list that lowers canonical ir for a GPU: layouts and barriers are the emitter's.
std::span<const Pass> cuda_passes();
/// The pass of that name in any list; throws UserError naming the known ones.
const Pass& pass_named(const std::string& name);

/// Runs the passes in order; verifies after each when TW_VERIFY is set (or `always_verify`), dumps
/// as TW_DUMP says.
void run_passes(Program& p, std::span<const Pass> passes, const PassContext& context,
                bool always_verify = false);

}  // namespace tw
