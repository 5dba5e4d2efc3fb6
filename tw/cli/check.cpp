#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "tw/base/error.h"
#include "tw/check/verify.h"
#include "tw/cli/apart.h"
#include "tw/cli/check_text.h"
#include "tw/cli/device.h"
#include "tw/cli/output.h"
#include "tw/cli/verbs.h"

namespace tw::cli {

using kernels::KernelEntry;
using kernels::Problem;

static check::Subject subject_of(const KernelEntry& k, const Problem& p, const RunKernel& run) {
  return {.arguments = k.arguments(p),
          .run = run,
          .reference = [&](std::span<const TensorView> in) { return k.reference(p, in); }};
}

/// All problems in this process, with every set of inputs.
static Judged judge_here(const KernelEntry& k, const std::vector<Problem>& problems,
                         const Arguments& a) {
  Judged all;
  for (int seed = 1; seed <= a.seeds; ++seed) {
    check::Sweep sweep({.whole = !names_problem(a), .seed = static_cast<uint64_t>(seed)});
    for (size_t i = 0; i < problems.size(); ++i) {
      show_progress(fmt::format("{} {}/{}", k.name, i + 1, problems.size()));
      sweep.add(to_string(problems[i]), subject_of(k, problems[i], runner(k, problems[i], a)));
    }
    all.faults += sweep.verdict();
    all.worst = std::max(all.worst, sweep.worst());
    all.elements += sweep.elements();
  }
  return all;
}

/// Each problem in a process of its own. `text`: a file's kernels, in place of the library's.
static Judged judge_emulated(const KernelEntry& k, const std::vector<Problem>& problems,
                             const Arguments& a, const EjectedKernels* text) {
  Judged all;
  for (size_t i = 0; i < problems.size(); ++i) {
    const Problem& p = problems[i];
    show_progress(fmt::format("{} {}/{}", k.name, i + 1, problems.size()));
    std::vector<RunKernel> runners;
    const auto judge = [&](uint64_t seed) {
      if (runners.empty()) runners = text ? runners_of(*text) : std::vector{runner(k, p, a)};
      check::SweepOptions options{.whole = false, .seed = seed};
      // Those of other unit strides are not what a file was ejected for.
      if (text)
        options.layouts = {check::Layout::unaligned, check::Layout::padded, check::Layout::gapped};
      check::Sweep sweep(options);
      for (const RunKernel& r : runners)
        for (size_t layout = 0; layout < (text ? options.layouts.size() : 1); ++layout)
          sweep.add(to_string(p), subject_of(k, p, r));
      return Judged{sweep.verdict(), sweep.worst(), sweep.elements(), text ? text->ran() : 0};
    };
    const Judged one = judged_apart(judge, a.seeds, a.timeout, to_string(p));
    if (!one.faults.empty()) all.faults += (all.faults.empty() ? "" : "\n") + one.faults;
    all.worst = std::max(all.worst, one.worst);
    all.elements += one.elements;
    all.ran |= one.ran;
  }
  return all;
}

/// Checks one kernel and prints its line; the row for --json.
static nlohmann::json check_kernel(const KernelEntry& k, const std::vector<Problem>& problems,
                                   const Arguments& a, const EjectedKernels* text) {
  nlohmann::json row = {{"kernel", k.name}, {"device", a.device}, {"problems", problems.size()}};
  const Judged j =
      is_emulated(a) ? judge_emulated(k, problems, a, text) : judge_here(k, problems, a);
  show_progress("");
  say(fmt::format("{:<15} {:>5} {:<8} {:>10} elements, worst error {:.3f} of its bound: {}\n",
                  k.name, problems.size(), problems.size() == 1 ? "problem" : "problems",
                  j.elements, j.worst, j.faults.empty() ? "right" : "WRONG"),
      a);
  if (!j.faults.empty()) say(j.faults + "\n", a);
  for (size_t i = 0; text && j.faults.empty() && i < text->count(); ++i)
    if ((j.ran >> i & 1) == 0)
      say(fmt::format("  '{}' did not run: no launch had the tensors that it takes\n",
                      text->name(i)),
          a);
  row.update({{"elements", j.elements}, {"max_err_over_bound", j.worst}, {"faults", j.faults}});
  return row;
}

static int finish_check(const std::vector<nlohmann::json>& rows, const Arguments& a) {
  if (a.json) write_json(*a.json, rows);
  return std::ranges::any_of(rows, [](const auto& row) { return row["faults"] != ""; }) ? 1 : 0;
}

static int check_text(const Arguments& a) {
  const TextToCheck t = text_to_check(a);
  return finish_check({check_kernel(*t.entry, t.problems, a, t.kernels.get())}, a);
}

int run_check(const Arguments& a) {
  if (!a.callable.empty()) return run_judge(a);
  if (!a.text.empty()) return check_text(a);
  std::vector<nlohmann::json> rows;
  if (!a.target.empty()) kernels::kernel_named(a.target);
  for (const KernelEntry& k : kernels::kernel_list()) {
    if (!a.target.empty() && a.target != k.name) continue;
    std::vector<Problem> problems = problems_of(k, a, k.sweep());
    if (is_emulated(a) && !names_problem(a)) keep_small(k, problems);
    if (problems.empty()) continue;
    rows.push_back(check_kernel(k, problems, a, nullptr));
  }
  if (rows.empty()) throw UserError(fmt::format("no kernel lists a problem of {}", *a.dtype));
  return finish_check(rows, a);
}

}  // namespace tw::cli
