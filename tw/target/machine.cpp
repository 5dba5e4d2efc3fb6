#include "tw/target/machine.h"

#include <array>
#include <fmt/format.h>

#include "tw/base/error.h"

namespace tw {

std::string to_string(const CpuMachine& m) {
  return fmt::format(
      "{} isa={} march={} vector_bytes={} vector_registers={} vnni={:d} fma_pipes={} l1d={} l2={} "
      "l3={} cores={}",
      m.name, m.isa, m.march, m.vector_bytes, m.vector_registers, m.vnni, m.fma_pipes, m.l1d, m.l2,
      m.l3, m.cores);
}

const CpuMachine& machine_named(const std::string& isa) {
  // Sources: AMD 56305 (Zen 3 optimization guide), Intel 355308 (optimization manual) and the
  // Xeon 6972P data sheet, Arm PJDOC-466751330 (Neoverse V1 optimization guide).
  static const std::array kMachines = {
    CpuMachine{.name = "AMD Zen 3",
               .isa = "avx2",
               .march = "x86-64-v3",
               .vector_bytes = 32,
               .vector_registers = 16,
               .fma_pipes = 2,
               .l1d = 32 << 10,
               .l2 = 512 << 10,
               .l3 = 32 << 20,
               .cores = 8},
    CpuMachine{.name = "Intel Granite Rapids",
               .isa = "avx512",
               .march = "x86-64-v4",
               .vector_bytes = 64,
               .vector_registers = 32,
               .vnni = true,
               .fma_pipes = 2,
               .l1d = 48 << 10,
               .l2 = 2 << 20,
               .l3 = 480 << 20,
               .cores = 96},
    CpuMachine{.name = "Arm Neoverse V1",
               .isa = "neon",
               .march = "armv8.4-a",
               .vector_bytes = 16,
               .vector_registers = 32,
               .fma_pipes = 4,
               .l1d = 64 << 10,
               .l2 = 1 << 20,
               .l3 = 32 << 20,
               .cores = 64},
#if defined(__x86_64__)
    CpuMachine{.name = "generic", .isa = "generic", .march = "x86-64", .fma_pipes = 1},
#else
    CpuMachine{.name = "generic", .isa = "generic", .march = "armv8-a", .fma_pipes = 1},
#endif
  };
  for (const CpuMachine& m : kMachines) {
    if (m.isa == isa) return m;
  }
  throw UserError(fmt::format("unknown machine '{}'", isa),
                  "known machines: avx2, avx512, neon, generic");
}

}  // namespace tw
