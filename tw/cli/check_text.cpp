#include "tw/cli/check_text.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
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

/// The axes that a call of the program may choose: extents of a tensor that are no constant.
static std::set<std::string> free_axes(const KernelEntry& k, const Problem& file,
                                       const Program& program) {
  std::set<std::string> all;
  for (const Param& tensor : given(program))
    for (size_t d = 0; d < tensor.dims.size(); ++d)
      if (!tensor.dims[d].is_constant()) all.insert(axis_at(k, file, tensor.name, d));
  return all;
}

/// Whether the kernel has such a problem.
static bool exists(const KernelEntry& k, const Problem& p) {
  try {
    return std::ranges::all_of(k.arguments(p), [](const kernels::Argument& argument) {
      return std::ranges::all_of(argument.dims, [](int64_t n) { return n >= 0; });
    });
  } catch (const UserError&) {  // of axes that must fit each other
    return false;
  }
}

/// A problem of which the file decides what a call cannot.
static Problem fitted(Problem p, const Problem& file, const std::set<std::string>& chosen) {
  p.dtype = file.dtype;
  p.options = file.options;
  for (const auto& [axis, extent] : file.shape)
    if (!chosen.contains(axis)) p.shape[axis] = extent;
  return p;
}

/// The problem of --shape. UserError where flags say of it what the file was not ejected for.
static Problem problem_said(const KernelEntry& k, const Problem& file,
                            const std::set<std::string>& chosen, const Arguments& a) {
  const std::string hint = fmt::format("the file was ejected for {}", to_string(file));
  Arguments flags = a;
  if (!flags.dtype) flags.dtype = name(file.dtype);
  const Problem said = problem_of(k, flags), p = fitted(said, file, chosen);
  if (a.dtype && said.dtype != file.dtype)
    throw UserError(fmt::format("--dtype {} with --text '{}'", *a.dtype, a.text), hint);
  if (!a.options.empty() && said.options != file.options)
    throw UserError(fmt::format("--option {} with --text '{}'", fmt::join(a.options, " "), a.text),
                    hint);
  for (const std::string& list : a.shape)
    for (const auto& [axis, extent] : p.shape)
      if (("," + list).find("," + axis + "=") != std::string::npos && extent != said.extent(axis))
        throw UserError(fmt::format("--shape {} with --text '{}'", list, a.text),
                        fmt::format("{}, which fixes {}", hint, axis));
  return p;
}

static std::vector<Problem> small_problems(const KernelEntry& k, const Problem& file,
                                           const std::set<std::string>& chosen) {
  std::vector<Problem> all;
  for (const Problem& listed : k.sweep()) {
    const Problem p = fitted(complete(k, listed), file, chosen);
    if (exists(k, p) && std::ranges::find(all, p) == all.end()) all.push_back(p);
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
  const Program p = k.trace(file, Target(gpu_named(source.arch)));
  const std::set<std::string> chosen = free_axes(k, file, p);
  const Problem said = problem_said(k, file, chosen, a);
  return {&k, std::make_unique<const EjectedKernels>(source, p),
          a.shape.empty() ? small_problems(k, file, chosen) : std::vector{said}};
}

std::vector<RunKernel> runners_of(const EjectedKernels& kernels) {
  std::vector<RunKernel> all;
  for (size_t i = 0; i < kernels.count(); ++i)
    all.emplace_back([&kernels, i](const auto& in, const auto& out) { kernels.run(i, in, out); });
  return all;
}

}  // namespace tw::cli
