#pragma once

#include <cstdint>
#include <string>

namespace tw::measure {

/// The best rates that small hand-written loops reached on this machine: what a kernel may hope
/// for.
struct Ceilings {
  int threads = 1;
  double f32_flops = 0;  ///< per microsecond, a fused multiply-add counting 2
  struct Stream {
    double read = 0, write = 0, copy = 0;  ///< bytes per microsecond; copy counts both directions
  };
  Stream memory;       ///< 256 MB a thread; writes go around the caches
  Stream cache;        ///< 256 KB a thread
  std::string loops;   ///< instruction set of the loops: "avx512", "avx2", "baseline"
  double seconds = 0;  ///< what measuring took
};

/// Measures in a worker process on `threads` CPUs: the best of `repeats` runs, three to five
/// seconds for seven. `worker` as in Settings. Throws DeviceError when the process fails.
Ceilings measure_ceilings(int threads, const std::string& worker = "", int repeats = 7);

}  // namespace tw::measure
