#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <sys/stat.h>

#include "tw/base/error.h"
#include "tw/cli/call.h"
#include "tw/cli/verbs.h"
#include "tw/ir/print.h"
#include "tw/ir/verify.h"
#include "tw/passes/pipeline.h"
#include "tw/runtime/device.h"
#include "tw/tensor/file.h"

namespace tw::cli {

/// More is no program that anybody wrote.
constexpr size_t kMostText = 64 << 20;

static std::string read_all(std::FILE* file, const std::string& path) {
  std::string text;
  char buffer[1 << 16];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, file)) {
    text.append(buffer, n);
    if (text.size() > kMostText)
      throw UserError(fmt::format("'{}' has more than {} MB of text", path, kMostText >> 20));
  }
  if (std::ferror(file)) fail_file(fmt::format("cannot read '{}'", path), errno);
  return text;
}

static std::string read_text(const std::string& path) {
  if (path == "-") return read_all(stdin, path);
  struct stat there;
  if (stat(path.c_str(), &there) != 0 || !(S_ISREG(there.st_mode) || S_ISFIFO(there.st_mode)))
    throw UserError(fmt::format("cannot read '{}'", path),
                    "wanted a file, -, or the name of a kernel");
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "r"));
  if (!file) fail_file(fmt::format("cannot read '{}'", path), errno);
  return read_all(file.get(), path);
}

static int threads_of(const Arguments& a, const CpuMachine& m) {
  return a.threads ? a.threads : m.cores;
}

static Program program_of(const Arguments& a, const CpuMachine& m) {
  if (!is_kernel(a.target)) return parse(read_text(a.target), a.target);
  const kernels::KernelEntry& k = kernels::kernel_named(a.target);
  return k.trace(problem_of(k, a), {m, threads_of(a, m)});
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
