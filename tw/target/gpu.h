#pragma once

#include <cstdint>
#include <string>

namespace tw {

/// A GPU as data: what lowering, emission and limits need to know. runtime/ asks the driver for
/// those of this machine; gpu_named() gives the fixed ones that tests and cross compilation use.
struct GpuMachine {
  std::string name;                              ///< e.g. "NVIDIA H200"
  std::string arch;                              ///< what the compiler gets: "sm_80", "sm_90a"
  int multiprocessors = 1;                       ///< usable by this process
  int64_t shared_per_block = 48 << 10;           ///< bytes, the most that a block may ask for
  int64_t shared_per_multiprocessor = 64 << 10;  ///< bytes
  int registers = 64 << 10;                      ///< of 32 bits, per multiprocessor
  int max_threads = 1024;                        ///< per multiprocessor
  int most_cluster = 1;               ///< blocks that may work together: 1, or a power of two
  bool early_launch = false;          ///< a launch may begin before the one before it ends
  int64_t l2 = 4 << 20;               ///< bytes
  int64_t memory = int64_t{8} << 30;  ///< bytes
  double copy_bandwidth = 0;          ///< bytes read and written per second by a large copy
  bool operator==(const GpuMachine&) const = default;
};

/// All fields on one line: part of the cache key, since lowering may look at any of them.
std::string to_string(const GpuMachine& m);

/// "sm_80" or "a100" (of 80 GB), "sm_90a" or "h200".
const GpuMachine& gpu_named(const std::string& name);
bool is_gpu_name(const std::string& name);

/// Blocks that a multiprocessor holds at once, of so many threads, each with so many registers, and
/// so many bytes of shared memory; 0: not even one.
int resident_blocks(const GpuMachine& m, int threads, int registers, int64_t shared_bytes);

/// The architecture that texts for a device of this compute capability are compiled for: that of
/// Hopper and later has the features that only it has ("sm_90a").
std::string gpu_arch(int major, int minor);

/// Blocks of a cluster that every device of this compute capability can run.
int most_cluster(int major);

/// Whether kernels of that compute capability can wait for the launches before theirs.
bool early_launch(int major);

/// Of a memory clock of so many kHz, with transfers on both edges, and a bus of so many bits: the
/// part of it that copies reach.
double copy_bandwidth(int64_t clock_khz, int64_t bus_bits);

/// Rates of a GPU, as stated by its maker or as reached on one. Terms: 1e12 operations or bytes a
/// second; a fused multiply-add counts 2; 0: not known.
struct GpuPeaks {
  std::string source;
  double f32 = 0, half = 0, f64 = 0, integer = 0, special = 0, convert = 0;
  double dot_tf32 = 0, dot_half = 0, dot_fp8 = 0, dot_i8 = 0, dot_f64 = 0;  ///< tensor cores
  double read = 0, write = 0, copy = 0;                                     ///< memory
  double cache_read = 0, cache_write = 0, cache_copy = 0;                   ///< second-level cache
  double load_ns = 0, cached_load_ns = 0;  ///< least time from a load to what needs it
  double clock_ghz = 0;
  int arithmetic_cycles = 0, special_cycles = 0, matrix_cycles = 0;  ///< least of an operation
  double launch_us = 0;  ///< of an empty kernel in a graph
};

/// Of the model that gpu_named() gives for the architecture. Throws UserError, where there is none.
const GpuPeaks& stated_peaks(const std::string& arch);
/// Measured on one; null where nobody did.
const GpuPeaks* reached_peaks(const std::string& arch);

}  // namespace tw
