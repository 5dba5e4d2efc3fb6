#pragma once

#include <string>

#include "tw/target/machine.h"

namespace tw {

/// Rates of a GPU, as stated by its maker or as reached on one. Terms: 1e12 operations or bytes a
/// second; a fused multiply-add counts 2; 0: not known.
struct GpuPeaks {
  std::string source;
  double f32 = 0, half = 0, f64 = 0, integer = 0, special = 0, convert = 0;
  double dot_tf32 = 0, dot_half = 0, dot_fp8 = 0, dot_i8 = 0, dot_f64 = 0;  ///< tensor cores
  double read = 0, write = 0, copy = 0;                   ///< memory
  double cache_read = 0, cache_write = 0, cache_copy = 0;  ///< second-level cache
  double load_ns = 0, cached_load_ns = 0;  ///< least time from a load to what needs it
  double clock_ghz = 0;
  int arithmetic_cycles = 0, special_cycles = 0, matrix_cycles = 0;  ///< least of an operation
  double launch_us = 0;  ///< of an empty kernel in a graph
};

/// Of the model that gpu_named() gives for the architecture. Throws UserError, where there is none.
const GpuPeaks& stated_peaks(const std::string& arch);
/// Measured on one; null where nobody did.
const GpuPeaks* reached_peaks(const std::string& arch);

/// What the makers of a machine_named() say of it.
struct CpuPeaks {
  double clock_ghz = 0;                  ///< the highest, of one core
  double memory_gbs = 0;                 ///< of a socket, 1e9 bytes a second
  int loads = 0, stores = 0;             ///< of vectors, started per cycle
};
/// Throws UserError for a machine that is no machine_named().
const CpuPeaks& stated_peaks(const CpuMachine& m);

}  // namespace tw
