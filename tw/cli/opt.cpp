#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <iterator>

#include "tw/base/error.h"
#include "tw/cli/call.h"
#include "tw/cli/verbs.h"
#include "tw/ir/print.h"
#include "tw/ir/verify.h"
#include "tw/passes/pipeline.h"
#include "tw/runtime/device.h"

namespace tw::cli {

static std::string read_text(const std::string& path) {
  std::string text;
  if (path == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    std::ifstream file(path);
    if (!file)
      throw UserError(fmt::format("cannot read '{}'", path),
                      "wanted a file, -, or the name of a kernel");
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  return text;
}

static bool is_kernel(const std::string& name) {
  for (const auto& k : kernels::kernel_list())
    if (name == k.name) return true;
  return false;
}

static int threads_of(const Arguments& a, const CpuMachine& m) {
  return a.threads ? a.threads : m.cores;
}

static Program program_of(const Arguments& a, const CpuMachine& m) {
  if (!is_kernel(a.target)) return parse(read_text(a.target), a.target);
  const kernels::KernelEntry& k = kernels::kernel_named(a.target);
  return k.trace(problem_of(k, a), m, threads_of(a, m));
}

int run_opt(const Arguments& a) {
  const Device device = Device::open("cpu:0");
  Program p = program_of(a, device.cpu());
  verify(p, "input");
  const Mapping mapping = a.mapping.empty() ? Mapping{} : parse_mapping(a.mapping);
  const Specialisation specialisation = contiguous_facts(p);
  const PassContext context{device.cpu(), mapping, specialisation};
  std::vector<Pass> passes;
  for (const std::string& name : a.passes) passes.push_back(pass_named(name));
  run_passes(p, passes, context, true);
  fmt::print("{}", print(p));
  return 0;
}

}  // namespace tw::cli
