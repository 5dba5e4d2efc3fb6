#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "tw/cli/call.h"
#include "tw/cli/verbs.h"
#include "tw/jit/kernel.h"

namespace tw::cli {

static Kernel kernel_of(const kernels::KernelEntry& k, const kernels::Problem& p,
                        const CpuMachine& m, int threads, const Arguments& a) {
  CompileOptions options;
  if (!a.mapping.empty()) options.mapping = parse_mapping(a.mapping);
  return compile(k.trace(p, {m, threads}), Device::open_as(m), options);
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
  const CpuMachine m = a.isa.empty() ? Device::open("cpu:0").cpu() : machine_named(a.isa);
  const int threads = std::max(a.threads, 1);
  kernel_of(k, p, m, threads, a)
      .eject(a.source, {.name = a.function,
                        .made_for = fmt::format("{}, {} thread{}", to_string(p), threads,
                                                threads == 1 ? "" : "s"),
                        .streaming = streams(written_bytes(k, p, a), m)});
  std::filesystem::path header(a.source);
  fmt::print("{} {}, {}\n  wrote {} and {}\n  build: g++ -std=c++17 -O2 -c {}\n", k.name,
             to_string(p), m.isa, a.source, header.replace_extension(".h").string(), a.source);
  return 0;
}

}  // namespace tw::cli
