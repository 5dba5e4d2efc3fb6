#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

#include "tw/base/error.h"
#include "tw/cli/bench_against.h"
#include "tw/cli/call.h"
#include "tw/cli/output.h"
#include "tw/cli/rows.h"
#include "tw/cli/verbs.h"
#include "tw/runtime/device.h"

namespace tw::cli {

namespace {

using kernels::KernelEntry;
using kernels::Problem;

/// The problem that the flags name, or all that the kernel's entry lists for benchmarks.
void add_kernel(BenchPlan& plan, const KernelEntry& k, const Arguments& a) {
  const int threads = a.threads > 0 ? a.threads : Device::open("cpu:0").cpu().cores;
  for (const Problem& p : problems_of(k, a, k.bench()))
    plan.cases.push_back(case_of(k, p, threads));
}

/// Leaves the suite's cases of --threads and --dtype; UserError that lists what it has when none
/// is left.
void keep_named(BenchPlan& plan, const Arguments& a) {
  const std::optional<DType> t = dtype_of(a);
  std::set<std::string> known;
  for (const BenchCase& c : plan.cases)
    known.insert(fmt::format("--threads {} --dtype {}", c.threads, name(c.problem.dtype)));
  std::erase_if(plan.cases, [&](const BenchCase& c) {
    return (a.threads > 0 && c.threads != a.threads) || (t && c.problem.dtype != *t);
  });
  if (plan.cases.empty())
    throw UserError(fmt::format("suite '{}' has no such case", a.target),
                    fmt::format("it has {}", fmt::join(known, ", ")));
}

/// True for a suite. A name of both is the kernel where flags say which of its problems.
bool names_suite(const Arguments& a) {
  const std::vector<std::string> suites = suite_names();
  const bool kernel = is_kernel(a.target);
  if (std::ranges::find(suites, a.target) == suites.end()) {
    if (a.target.empty() || kernel) return false;
    std::set<std::string> known(suites.begin(), suites.end());
    for (const KernelEntry& k : kernels::kernel_list()) known.insert(k.name);
    throw UserError(fmt::format("no kernel or suite is called '{}'", a.target),
                    did_you_mean(a.target, {known.begin(), known.end()}));
  }
  if (kernel) return !names_problem(a) && !a.dtype;
  if (names_problem(a))
    throw UserError(
        fmt::format("suite '{}' takes no {}", a.target, a.shape.empty() ? "--option" : "--shape"),
        "name a kernel to choose its problem");
  return true;
}

BenchPlan plan_of(const Arguments& a) {
  BenchPlan plan;
  if (names_suite(a)) {
    plan = suite_named(a.target);
    keep_named(plan, a);
  } else {
    plan.suite = "kernel";
    plan.peers = peers_found();
    if (!a.target.empty()) {
      add_kernel(plan, kernels::kernel_named(a.target), a);
    } else {
      for (const KernelEntry& k : kernels::kernel_list()) add_kernel(plan, k, a);
      if (plan.cases.empty())
        throw UserError(fmt::format("no kernel lists a problem of {}", *a.dtype));
    }
  }
  if (!a.peers.empty()) plan.peers = a.peers;
  plan.peers_named = !a.peers.empty() && is_kernel(a.target);
  if (!a.mapping.empty()) plan.mapping = parse_mapping(a.mapping);
  return plan;
}

}  // namespace

/// UserError where words are said that would change nothing.
static void expect_used(const Arguments& a) {
  const bool rows = !a.rows.empty(), before = !a.before.empty();
  const std::pair<const char*, bool> with_rows[] = {{"a kernel or suite", !a.target.empty()},
                                                    {"--shape", !a.shape.empty()},
                                                    {"--dtype", a.dtype.has_value()},
                                                    {"--option", !a.options.empty()},
                                                    {"--threads", a.threads > 0},
                                                    {"--mapping", !a.mapping.empty()},
                                                    {"--peer", !a.peers.empty()},
                                                    {"--before", before},
                                                    {"--json", a.json.has_value()}};
  for (const auto& [word, said] : with_rows)
    if (rows && said)
      throw UserError(fmt::format("--rows with {}", word),
                      "--rows times nothing: it compares rows that are there, by --against alone");
  for (const auto& [word, said] :
       {std::pair("--against", !a.against.empty()), std::pair("--peer", !a.peers.empty())})
    if (before && said)
      throw UserError(fmt::format("--before with {}", word),
                      "--before times beside an earlier build and nothing else: run bench twice");
  if (rows && a.against.empty())
    throw UserError("--rows without --against", "name earlier rows to compare them with");
}

int run_bench(const Arguments& a) {
  expect_used(a);
  const std::vector<nlohmann::json> earlier = rows_of("--against", a.against);
  if (!a.rows.empty()) return report_changes(changes_of(rows_of("--rows", a.rows), earlier));
  if (!a.before.empty()) return bench_before(plan_of(a), a);
  std::vector<measure::Row> rows;
  std::vector<nlohmann::json> lines;
  const bool file = a.json && !a.json->empty();
  const auto done = [&](const std::vector<measure::Row>& of_case) {
    for (const measure::Row& r : of_case) {
      rows.push_back(r);
      lines.push_back(to_json(r));
    }
    // A run that is cut short leaves what it found.
    if (file) write_json(*a.json, lines);
  };
  run_plan(
      plan_of(a), [](const std::string& what) { to_stderr(what + "\n"); }, done);
  if (shows_text(a)) {
    fmt::print("{}", measure::to_table(rows));
    if (const measure::Wins w = measure::wins(rows); w.problems > 0)
      fmt::print("{}\n", to_string(w));
  }
  if (a.json && !file) write_json(*a.json, lines);
  return a.against.empty() ? 0 : report_changes(changes_of(lines, earlier));
}

}  // namespace tw::cli
