#include "tw/cli/check_text.h"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>

#include "tw/base/error.h"

namespace tw::cli {

using kernels::KernelEntry;
using kernels::Problem;

bool is_emulated(const Arguments& a) { return a.device.starts_with("emu:"); }

void keep_small(const KernelEntry& k, std::vector<Problem>& problems) {
  constexpr int64_t kMostElements = 20'000;
  std::erase_if(problems, [&](const Problem& p) {
    int64_t sum = 0;
    for (const kernels::Argument& argument : k.arguments(p)) {
      int64_t count = 1;
      for (const int64_t n : argument.dims) count *= n;
      sum += count;
    }
    return sum > kMostElements;
  });
}

/// The problem of a file's comment, "m=64,n=32 f32 epilogue=bias", as the flags would say it.
static Arguments flags_of(const std::string& made_for, const Arguments& a) {
  Arguments said = a;
  std::istringstream in(made_for);
  std::string shape, dtype;
  in >> shape >> dtype;
  said.shape = {shape};
  said.dtype = dtype;
  said.options.clear();
  for (std::string option; in >> option;) said.options.push_back(option);
  return said;
}

/// UserError where the user says of the problem what the file was not ejected for.
static void expect_same(const Problem& file, const Problem& said, const Arguments& a) {
  const std::string hint = fmt::format("the file was ejected for {}", to_string(file));
  if (a.dtype && said.dtype != file.dtype)
    throw UserError(fmt::format("--dtype {} with --text '{}'", *a.dtype, a.text), hint);
  if (!a.options.empty() && said.options != file.options)
    throw UserError(fmt::format("--option {} with --text '{}'", fmt::join(a.options, " "), a.text),
                    hint);
}

static std::vector<Problem> problems_like(const KernelEntry& k, const Problem& file,
                                          const Arguments& a) {
  if (!a.shape.empty()) {
    Problem p = problem_of(k, a);
    p.dtype = file.dtype;
    p.options = file.options;
    return {p};
  }
  std::vector<Problem> all;
  for (const Problem& listed : k.sweep()) {
    const Problem p = complete(k, listed);
    if (p.dtype == file.dtype && p.options == file.options) all.push_back(p);
  }
  keep_small(k, all);
  if (all.empty())
    throw UserError(fmt::format("'{}' lists no small problem like {}", k.name, to_string(file)),
                    "name one by --shape");
  return all;
}

TextToCheck text_to_check(const Arguments& a) {
  if (a.target.empty())
    throw UserError("--text needs the kernel whose reference it is checked against",
                    "tilewright check KERNEL --device emu:0 --text FILE.cu");
  if (!is_emulated(a))
    throw UserError(fmt::format("--text with --device {}", a.device), "wanted --device emu:0");
  if (!a.mapping.empty())
    throw UserError("--mapping with --text", "the file's first line says how it was mapped");
  const KernelEntry& k = kernels::kernel_named(a.target);
  const EjectedSource source = read_ejected(a.text);
  const Problem file = problem_of(k, source.made_for.empty() ? a : flags_of(source.made_for, a));
  expect_same(file, problem_of(k, a), a);
  const Program p = k.trace(file, Target(gpu_named(source.arch)));
  return {&k, std::make_unique<const EjectedKernels>(source, p), problems_like(k, file, a)};
}

std::vector<RunKernel> runners_of(const EjectedKernels& kernels) {
  std::vector<RunKernel> all;
  for (size_t i = 0; i < kernels.count(); ++i)
    all.emplace_back([&kernels, i](const auto& in, const auto& out) { kernels.run(i, in, out); });
  return all;
}

}  // namespace tw::cli
