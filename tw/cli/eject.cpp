#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/cli/call.h"
#include "tw/cli/device.h"
#include "tw/cli/verbs.h"
#include "tw/jit/kernel.h"

namespace tw::cli {

/// A GPU need not be here: its architecture is enough.
static Device device_of(const Arguments& a) {
  const bool described = a.device.starts_with("sm_") || is_gpu_name(a.device);
  if (described || a.device.starts_with("cuda:")) {
    if (!a.isa.empty()) {
      throw UserError(fmt::format("--isa {} with --device {}", a.isa, a.device),
                      "instructions are chosen for CPUs only");
    }
    if (described) return Device::open_as(gpu_named(a.device));
  }
  if (!a.isa.empty()) return Device::open_as(machine_named(a.isa));
  return open_device(a.device, "cpu:0 (with --isa), cuda:0, a100 (sm_80), h200 (sm_90a)");
}

/// Of all outputs; 0 where no shape is named, since then nothing is known of their size.
static int64_t written_bytes(const kernels::KernelEntry& k, const kernels::Problem& p,
                             const Arguments& a) {
  int64_t sum = 0;
  if (a.shape.empty()) return sum;
  for (const kernels::Argument& argument : k.arguments(p))
    if (argument.output) sum += byte_count(argument.dtype, argument.dims);
  return sum;
}

int run_eject(const Arguments& a) {
  const kernels::KernelEntry& k = kernels::kernel_named(a.target);
  const kernels::Problem p = problem_of(k, a);
  const Device device = device_of(a);
  const Target target = device.target(std::max(a.threads, 1));
  CompileOptions options;
  if (!a.mapping.empty()) options.mapping = parse_mapping(a.mapping);
  EjectOptions how{.name = a.function, .made_for = to_string(p)};
  std::string machine, build;
  if (const CpuMachine* cpu = target.cpu()) {
    how.made_for +=
        fmt::format(", {} thread{}", target.threads(), target.threads() == 1 ? "" : "s");
    how.streaming = streams(written_bytes(k, p, a), *cpu);
    machine = cpu->isa;
    build = "g++ -std=c++17 -O2 -c";
  } else {
    machine = target.gpu()->arch;
    build = fmt::format("nvcc -std=c++17 -arch={} -c", machine);
  }
  compile(k.trace(p, target), device, options).eject(a.source, how);
  std::filesystem::path header(a.source);
  fmt::print("{} {}, {}\n  wrote {} and {}\n  build: {} {}\n", k.name, to_string(p), machine,
             a.source, header.replace_extension(".h").string(), build, a.source);
  return 0;
}

}  // namespace tw::cli
