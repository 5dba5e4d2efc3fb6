#include "tw/cli/explain.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tw/base/error.h"
#include "tw/cli/call.h"
#include "tw/cli/device.h"
#include "tw/cli/model.h"
#include "tw/cli/output.h"
#include "tw/cli/verbs.h"
#include "tw/runtime/device.h"

namespace tw::cli {
namespace {

std::string bytes_text(double n) {
  const char* unit = "B";
  for (const char* next : {"kB", "MB", "GB"}) {
    if (n < 1000) break;
    n /= 1000, unit = next;
  }
  return fmt::format("{:.3g} {}", n, unit);
}

/// The smallest level that holds `bytes`; a core has an L1 and an L2 of its own.
std::string level_of(int64_t bytes, const CpuMachine& m, int threads) {
  if (bytes <= m.l1d * threads) return "fits the L1 caches";
  if (bytes <= m.l2 * threads) return "fits the L2 caches";
  if (bytes <= m.l3) return "fits the L3 cache, as far as others leave it";
  return "larger than all caches";
}

nlohmann::json by_resource(const Limit& l) {
  nlohmann::json all = nlohmann::json::object();
  for (size_t r = 0; r < kResources; ++r)
    if (l.us[r] > 0) all[name(static_cast<Resource>(r))] = l.us[r];
  return all;
}

void print(const BenchCase& c, const Explanation& e, const CpuMachine& m) {
  const bool cold = c.inputs == Residence::memory;
  const measure::Ceilings::Stream& s = cold ? e.rates.memory : e.rates.cache;
  fmt::print("{} {} {}, {} thread{}, inputs {}\n", c.kernel->name, shape_text(c),
             name(c.problem.dtype), c.threads, c.threads == 1 ? "" : "s",
             cold ? "in memory" : "in the caches");
  print_work(e.least.work);
  const int64_t all = tensor_bytes(*c.kernel, c.problem);
  fmt::print("  tensors of {}: {}\n", bytes_text(static_cast<double>(all)),
             level_of(all, m, c.threads));
  fmt::print("  mapping {}\n", e.row.mapping);
  fmt::print("  measured rates: {:.1f} GB/s read, {:.1f} write, {:.1f} copy; {:.0f} GFLOP/s\n\n",
             s.read * 1e-3, s.write * 1e-3, s.copy * 1e-3, e.rates.f32_flops * 1e-3);
  print_limits(e.least, e.hoped);
  fmt::print("\n  takes {:.2f} us: {:.0f} % of the limit, {:.0f} % of the ceiling\n", e.row.time_us,
             100 * e.row.fraction, 100 * e.row.ceiling_fraction);
}

nlohmann::json to_json(const Explanation& e) {
  nlohmann::json row = measure::to_json(e.row);
  add_limits(row, e.least, e.hoped);
  return row;
}

}  // namespace

void print_work(const Work& w) {
  fmt::print("  {} read, {} written, {:.4g} Mflop: {:.3g} flop a byte\n",
             bytes_text(static_cast<double>(w.bytes_read)),
             bytes_text(static_cast<double>(w.bytes_written)), w.flops * 1e-6,
             w.bytes() > 0 ? w.flops / static_cast<double>(w.bytes()) : 0);
  std::string text;
  for (size_t u = 0; u < kUnits; ++u)
    if (w.ops[u] > 0)
      text += fmt::format("{}{:.4g} M {}", text.empty() ? "" : ", ", w.ops[u] * 1e-6,
                          name(static_cast<Unit>(u)));
  fmt::print("  operations: {}\n", text.empty() ? "none" : text);
}

void print_limits(const Limit& least, const std::optional<Limit>& hoped) {
  fmt::print("  {:<12} {:>12} {:>12}\n", "", "limit, us", "ceiling, us");
  for (size_t r = 0; r < kResources; ++r) {
    if (least.us[r] == 0) continue;
    const std::string ceiling =
        hoped && hoped->us[r] > 0 ? fmt::format("{:.2f}", hoped->us[r]) : "-";
    fmt::print("  {:<12} {:>12.2f} {:>12}{}\n", name(static_cast<Resource>(r)), least.us[r],
               ceiling, static_cast<Resource>(r) == least.bound() ? "   <- bounds" : "");
  }
}

void add_limits(nlohmann::json& row, const Limit& least, const std::optional<Limit>& hoped) {
  row["limit_us_of"] = by_resource(least);
  if (hoped) row["ceiling_us_of"] = by_resource(*hoped);
}

void expect_no_rows(const Arguments& a) {
  if (a.rows.empty()) return;
  throw UserError(fmt::format("--rows with {}", is_model(a.target) ? "a model" : a.device),
                  "rows are read for a kernel on a GPU, as --device h200; leave --rows out");
}

int run_explain(const Arguments& a) {
  if (is_model(a.target)) {
    expect_no_rows(a);
    return explain_model(a);
  }
  if (is_target(a.device)) return explain_target(a);
  const CpuMachine machine =
      open_device(a.device, "cpu:0, cuda:0, a100 (sm_80), h200 (sm_90a), avx2, avx512, neon").cpu();
  expect_no_rows(a);
  const kernels::KernelEntry& k = kernels::kernel_named(a.target);
  const BenchCase c = case_of(k, problem_of(k, a), a.threads > 0 ? a.threads : machine.cores);
  const Explanation e = explain(c, a.mapping.empty() ? Mapping{} : parse_mapping(a.mapping));
  if (shows_text(a)) print(c, e, machine);
  if (a.json) write_json(*a.json, {to_json(e)});
  return 0;
}

}  // namespace tw::cli
