#pragma once

#include <memory>
#include <vector>

#include "tw/cli/call.h"
#include "tw/cli/device.h"
#include "tw/emu/ejected.h"

namespace tw::cli {

/// Whether --device names the emulator, where a check takes its time.
bool is_emulated(const Arguments& a);

/// Leaves the problems that are small enough for it.
void keep_small(const kernels::KernelEntry& k, std::vector<kernels::Problem>& problems);

/// What --text names: a file ejected from the kernel that is the target, and the problems on which
/// it is to be checked, which have the type and the options that it was ejected for.
struct TextToCheck {
  const kernels::KernelEntry* entry;
  std::unique_ptr<const EjectedKernels> kernels;
  std::vector<kernels::Problem> problems;
};
/// Throws UserError where flags and file do not go together, and as EjectedKernels does.
TextToCheck text_to_check(const Arguments& a);

/// One for each kernel of the file.
std::vector<RunKernel> runners_of(const EjectedKernels& kernels);

}  // namespace tw::cli
