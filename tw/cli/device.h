#pragma once

#include <functional>

#include "tw/cli/call.h"
#include "tw/jit/kernel.h"

namespace tw::cli {

/// Called with inputs and outputs, in declaration order.
using RunKernel =
    std::function<void(const std::vector<TensorView>&, const std::vector<TensorView>&)>;

/// Device::open() for a verb that takes the devices of the list `known`, which its error names.
Device open_device(const std::string& name, const std::string& known);

/// The kernel compiled for the device, threads and mapping of the flags.
Kernel kernel_for(const kernels::KernelEntry& k, const kernels::Problem& p, const Arguments& a);

/// Runs the call; the path of the emitted source, "" where there is none.
std::string run_call(const Call& call, const Arguments& a);

/// Runs the kernel's program: on the interpreter for --device interp, else as kernel_for().
RunKernel runner(const kernels::KernelEntry& k, const kernels::Problem& p, const Arguments& a);

}  // namespace tw::cli
