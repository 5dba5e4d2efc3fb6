#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "tw/target/gpu.h"

namespace tw {

/// A CPU as data: what lowering, emission and limits need to know. runtime/ measures the machine it
/// runs on; machine_named() gives the fixed ones that tests and cross compilation use.
struct CpuMachine {
  std::string name;   ///< e.g. "Intel(R) Xeon(R) Processor"
  std::string isa;    ///< "avx2", "avx512", "neon", "generic": a row of the emitter's builtin table
  std::string march;  ///< what the compiler's -march= gets, e.g. "x86-64-v4"
  int vector_bytes = 16;  ///< of one register: 32 on AVX2, 64 on AVX-512, 16 on NEON
  int vector_registers = 16;
  bool vnni = false;       ///< AVX512-VNNI: sums of four products of bytes
  int fma_pipes = 2;       ///< vector FMA instructions started per cycle
  int64_t l1d = 32 << 10;  ///< bytes, per core
  int64_t l2 = 512 << 10;  ///< bytes, per core
  int64_t l3 = 8 << 20;    ///< bytes, shared
  int cores = 1;           ///< usable by this process
  bool operator==(const CpuMachine&) const = default;
};

/// All fields on one line: part of the cache key, since lowering may look at any of them.
std::string to_string(const CpuMachine& m);

/// "avx2" (Zen 3), "avx512" (Granite Rapids), "neon" (Neoverse V1), "generic" (128-bit vectors,
/// portable text only).
const CpuMachine& machine_named(const std::string& isa);

/// What the makers of a machine_named() say of it.
struct CpuPeaks {
  double clock_ghz = 0;       ///< the highest, of one core
  double memory_gbs = 0;      ///< of a socket, 1e9 bytes a second
  int loads = 0, stores = 0;  ///< of vectors, started per cycle
};
/// Throws UserError for a machine that is no machine_named().
const CpuPeaks& stated_peaks(const CpuMachine& m);

/// The machine that a program is made for, of any kind: what tilings may look at. Device::target()
/// gives that of a device.
class Target {
 public:
  /// So many threads of a CPU.
  Target(CpuMachine m, int threads) : machine_(std::move(m)), threads_(threads) {}
  Target(GpuMachine m) : machine_(std::move(m)) {}

  /// Null where the machine is of another kind.
  const CpuMachine* cpu() const { return std::get_if<CpuMachine>(&machine_); }
  const GpuMachine* gpu() const { return std::get_if<GpuMachine>(&machine_); }
  int threads() const { return threads_; }  ///< of a CPU, else 1

 private:
  std::variant<CpuMachine, GpuMachine> machine_;
  int threads_ = 1;
};

}  // namespace tw
