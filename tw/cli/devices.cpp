#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tw/cli/output.h"
#include "tw/cli/verbs.h"
#include "tw/runtime/device.h"

namespace tw::cli {

int run_devices(const Arguments& a) {
  const Device device = Device::open("cpu:0");
  const CpuMachine& m = device.cpu();
  if (a.json) {
    nlohmann::json row = {
        {"device", device.name()}, {"name", m.name},   {"isa", m.isa},
        {"march", m.march},        {"cores", m.cores}, {"vector_bytes", m.vector_bytes},
        {"l1d_bytes", m.l1d},      {"l2_bytes", m.l2}, {"l3_bytes", m.l3}};
    write_json(*a.json, {row});
    return 0;
  }
  fmt::print("{:<7} {}\n", device.name(), m.name);
  fmt::print("        {} cores, {} ({}-bit vectors), -march={}\n", m.cores, m.isa,
             m.vector_bytes * 8, m.march);
  fmt::print("        L1d {} KiB, L2 {} KiB a core, L3 {} MiB shared\n", m.l1d >> 10, m.l2 >> 10,
             m.l3 >> 20);
  fmt::print("{:<7} CUDA text, run by the CPU and searched for races, slowly\n", "emu:0");
  fmt::print("{:<7} the interpreter: the meaning of every program, slowly\n", "interp");
  return 0;
}

}  // namespace tw::cli
