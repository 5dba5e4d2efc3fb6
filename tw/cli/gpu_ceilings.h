#pragma once

#include "tw/runtime/device.h"

namespace tw::cli {

/// CUDA text of the loops by which a GPU is measured, one kernel each. Blocks are of kLoopThreads
/// threads.
std::string ceiling_loops(const GpuMachine& m);
inline constexpr int kLoopThreads = 256;

/// The best rates that those loops reach on the device: a second or two. Throws as compile_cuda()
/// and cuda::launch() do.
GpuPeaks measure_gpu(const Device& d);

}  // namespace tw::cli
