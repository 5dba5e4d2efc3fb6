#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tw/base/error.h"
#include "tw/check/verify.h"
#include "tw/cli/device.h"
#include "tw/cli/output.h"
#include "tw/cli/verbs.h"

namespace tw::cli {

using kernels::KernelEntry;
using kernels::Problem;

/// Checks one kernel and prints its line; the row for --json.
static nlohmann::json check_kernel(const KernelEntry& k, const std::vector<Problem>& problems,
                                   const Arguments& a) {
  nlohmann::json row = {{"kernel", k.name}, {"device", a.device}, {"problems", problems.size()}};
  double worst = 0;
  int64_t elements = 0;
  std::string faults;
  for (int seed = 1; seed <= a.seeds; ++seed) {
    check::Sweep sweep({.whole = !names_problem(a), .seed = static_cast<uint64_t>(seed)});
    for (size_t i = 0; i < problems.size(); ++i) {
      show_progress(fmt::format("{} {}/{}", k.name, i + 1, problems.size()));
      sweep.add(to_string(problems[i]), {.arguments = k.arguments(problems[i]),
                                         .run = runner(k, problems[i], a),
                                         .reference = [&](std::span<const TensorView> in) {
                                           return k.reference(problems[i], in);
                                         }});
    }
    faults += sweep.verdict();
    worst = std::max(worst, sweep.worst());
    elements += sweep.elements();
  }
  show_progress("");
  say(fmt::format("{:<15} {:>5} {:<8} {:>10} elements, worst error {:.3f} of its bound: {}\n",
                  k.name, problems.size(), problems.size() == 1 ? "problem" : "problems", elements,
                  worst, faults.empty() ? "right" : "WRONG"),
      a);
  if (!faults.empty()) say(faults + "\n", a);
  row.update({{"elements", elements}, {"max_err_over_bound", worst}, {"faults", faults}});
  return row;
}

int run_check(const Arguments& a) {
  if (!a.callable.empty()) return run_judge(a);
  std::vector<nlohmann::json> rows;
  bool wrong = false;
  if (!a.target.empty()) kernels::kernel_named(a.target);
  for (const KernelEntry& k : kernels::kernel_list()) {
    if (!a.target.empty() && a.target != k.name) continue;
    const std::vector<Problem> problems = problems_of(k, a, k.sweep());
    if (problems.empty()) continue;
    rows.push_back(check_kernel(k, problems, a));
    wrong |= !rows.back()["faults"].get<std::string>().empty();
  }
  if (rows.empty()) throw UserError(fmt::format("no kernel lists a problem of {}", *a.dtype));
  if (a.json) write_json(*a.json, rows);
  return wrong ? 1 : 0;
}

}  // namespace tw::cli
