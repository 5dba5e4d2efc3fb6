#include <array>
#include <fmt/format.h>
#include <utility>

#include "tw/base/error.h"
#include "tw/target/machine.h"

namespace tw {

// Sources: the data sheets of A100 80GB SXM and H200 SXM (dense rates); instructions per clock and
// multiprocessor from the table of arithmetic throughput in NVIDIA's CUDA C++ Programming Guide, at
// the boost clock. An instruction rounds two f32 to 16 bits, and LOP3, IADD3 and IMAD do two
// integer operations in either of two pipes of 64 lanes. A multiprocessor moves 64 bytes per clock
// from or to the second-level cache. Latencies: Luo et al. 2024 (arXiv 2402.13499); a launch in a
// graph: measured.
const GpuPeaks& stated_peaks(const std::string& arch) {
  static const std::array kPeaks = {
      std::pair{"sm_80", GpuPeaks{.source = "data sheet of A100-SXM4-80GB",
                                  .f32 = 19.5,
                                  .half = 78,
                                  .f64 = 9.7,
                                  .integer = 39,
                                  .special = 2.44,
                                  .convert = 19.5,
                                  .dot_tf32 = 156,
                                  .dot_half = 312,
                                  .dot_fp8 = 312,
                                  .dot_i8 = 624,
                                  .dot_f64 = 19.5,
                                  .read = 2.039,
                                  .write = 2.039,
                                  .copy = 2.039,
                                  .cache_read = 9.75,
                                  .cache_write = 9.75,
                                  .cache_copy = 9.75,
                                  .load_ns = 200,
                                  .cached_load_ns = 100,
                                  .clock_ghz = 1.41,
                                  .arithmetic_cycles = 4,
                                  .special_cycles = 16,
                                  .matrix_cycles = 16,
                                  .launch_us = 0.5}},
      std::pair{"sm_90a", GpuPeaks{.source = "data sheet of H200",
                                   .f32 = 67,
                                   .half = 134,
                                   .f64 = 34,
                                   .integer = 67,
                                   .special = 4.18,
                                   .convert = 33.5,
                                   .dot_tf32 = 495,
                                   .dot_half = 989,
                                   .dot_fp8 = 1979,
                                   .dot_i8 = 1979,
                                   .dot_f64 = 67,
                                   .read = 4.8,
                                   .write = 4.8,
                                   .copy = 4.8,
                                   .cache_read = 16.7,
                                   .cache_write = 16.7,
                                   .cache_copy = 16.7,
                                   .load_ns = 240,
                                   .cached_load_ns = 130,
                                   .clock_ghz = 1.98,
                                   .arithmetic_cycles = 4,
                                   .special_cycles = 16,
                                   .matrix_cycles = 16,
                                   .launch_us = 0.5}},
  };
  for (const auto& [name, peaks] : kPeaks)
    if (name == arch) return peaks;
  throw UserError(fmt::format("no rates of '{}' are known", arch), "those of sm_80 and sm_90a are");
}

// On one H200, by the loops of `tilewright devices --measure`, which copy at 4.08; the copy is one
// of others' kernels.
const GpuPeaks* reached_peaks(const std::string& arch) {
  static const GpuPeaks kH200 = {.source = "reached on an H200",
                                 .f32 = 61.3,
                                 .half = 117.7,
                                 .f64 = 33.2,
                                 .integer = 45.7,
                                 .special = 4.17,
                                 .convert = 31.7,
                                 .dot_tf32 = 481,
                                 .dot_half = 962,
                                 .dot_fp8 = 1932,
                                 .dot_i8 = 1792,
                                 .read = 4.69,
                                 .write = 4.66,
                                 .copy = 4.28,
                                 .cache_read = 9.4,
                                 .cache_write = 4.8,
                                 .cache_copy = 8.7,
                                 .load_ns = 345,
                                 .cached_load_ns = 142,
                                 .launch_us = 0.5};
  return arch == "sm_90a" ? &kH200 : nullptr;
}

// Sources: data sheets of Ryzen 7 5800X, Xeon 6972P and Graviton3; ports from the guides that
// machine.cpp names.
const CpuPeaks& stated_peaks(const CpuMachine& m) {
  static const std::array kPeaks = {
      std::pair{"AMD Zen 3",
                CpuPeaks{.clock_ghz = 4.7, .memory_gbs = 51.2, .loads = 2, .stores = 1}},
      std::pair{"Intel Granite Rapids",
                CpuPeaks{.clock_ghz = 3.9, .memory_gbs = 844.8, .loads = 2, .stores = 1}},
      std::pair{"Arm Neoverse V1",
                CpuPeaks{.clock_ghz = 2.6, .memory_gbs = 307.2, .loads = 3, .stores = 2}},
  };
  for (const auto& [name, peaks] : kPeaks)
    if (name == m.name) return peaks;
  throw UserError(fmt::format("no rates of '{}' are known", m.name),
                  "those of avx2, avx512 and neon are");
}

}  // namespace tw
