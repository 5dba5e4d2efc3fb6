#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tw/base/error.h"
#include "tw/check/reference.h"
#include "tw/cli/call.h"
#include "tw/cli/device.h"
#include "tw/cli/model.h"
#include "tw/cli/output.h"
#include "tw/cli/verbs.h"
#include "tw/tensor/file.h"
#include "tw/tensor/npy.h"

namespace tw::cli {

/// Where each output goes: --output NAME=FILE, or nothing.
static std::vector<std::pair<size_t, std::string>> output_files(const kernels::KernelEntry& k,
                                                                const Arguments& a) {
  std::vector<std::pair<size_t, std::string>> files;
  for (const std::string& text : a.outputs) {
    auto [name, file] = split_pair("--output", text, "name=FILE.npy");
    size_t index = 0;
    bool found = false;
    for (const kernels::Argument& argument : k.arguments(problem_of(k, a))) {
      if (!argument.output) continue;
      if (argument.name == name) {
        for (const auto& [earlier, other] : files)
          if (earlier == index) refuse_twice("--output", name);
        expect_writable(file);
        files.emplace_back(index, file);
        found = true;
      }
      ++index;
    }
    if (!found)
      throw UserError(fmt::format("--output names '{}', which is no output of '{}'", name, k.name));
  }
  return files;
}

int run_run(const Arguments& a) {
  if (is_model(a.target)) return run_model(a);
  if (a.json || a.profile)
    throw UserError(
        fmt::format("{} is for models, the target is a kernel", a.json ? "--json" : "--profile"));
  const auto files = output_files(kernels::kernel_named(a.target), a);
  Call call = call_of(a);
  const std::string source = run_call(call, a);
  fmt::print("{} {}\n", call.entry->name, to_string(call.problem));
  print_made_up(call.made_up);
  if (!source.empty()) fmt::print("  emitted source: {}\n", source);
  if (a.check) {
    check::Reference reference = call.entry->reference(call.problem, call.input_views());
    check::Worst worst = check::worst_error(reference, call.output_views());
    fmt::print("  against float64: largest error {:.3g} ({:.3g} of its bound)\n", worst.error,
               worst.ratio);
    if (worst.ratio > 1) {
      to_stderr("tilewright: the result is wrong: its error is above the bound\n");
      return 1;
    }
  }
  for (const auto& [index, file] : files) {
    write_npy(file, call.outputs[index]);
    fmt::print("  wrote {}\n", file);
  }
  return 0;
}

}  // namespace tw::cli
