#pragma once

#include "tw/runtime/device.h"

namespace tw::cli {

/// CUDA text of the loops by which a GPU is measured, one kernel each. Blocks are of kLoopThreads
/// threads.
std::string ceiling_loops(const GpuMachine& m);
inline constexpr int kLoopThreads = 256;
inline constexpr int64_t kLineBytes = 128;  ///< of the ring that is followed

/// Ways to read, write and copy: which is best depends on the GPU.
struct StreamLoop {
  int vectors;  ///< of 16 bytes that a thread has on their way
  const char* hint;
  int64_t tile_bytes() const { return int64_t{16} * vectors * kLoopThreads; }
};
inline constexpr StreamLoop kStreamLoops[] = {{4, "cg"}, {8, "cg"}, {4, "cs"}, {8, "cs"}};
/// The loop that does `what` (read, write, copy) in such a way.
std::string stream_loop(const std::string& what, const StreamLoop& s);

/// The best rates that those loops reach on the device: a second or two. Throws as compile_cuda()
/// and cuda::launch() do.
GpuPeaks measure_gpu(const Device& d);

}  // namespace tw::cli
