#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tw/cli/bench_case.h"
#include "tw/cli/call.h"
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

void print_resource(const char* what, const char* rates, double least, double hoped, bool holds) {
  fmt::print("  {:<12} {:>12.2f} {:>12.2f}   {}{}\n", what, least, hoped, rates,
             holds ? "  <- bounds" : "");
}

void print(const BenchCase& c, const Explanation& e, const CpuMachine& m) {
  const bool cold = c.inputs == Residence::memory;
  const Work& w = e.hoped.work;
  const measure::Ceilings::Stream& s = cold ? e.rates.memory : e.rates.cache;
  fmt::print("{} {} {}, {} thread{}, inputs {}\n", c.kernel->name, shape_text(c),
             name(c.problem.dtype), c.threads, c.threads == 1 ? "" : "s",
             cold ? "in memory" : "in the caches");
  fmt::print("  {} read, {} written, {:.4g} Mflop: {:.3g} flop a byte\n",
             bytes_text(static_cast<double>(w.bytes_read)),
             bytes_text(static_cast<double>(w.bytes_written)), w.flops * 1e-6,
             w.bytes() > 0 ? w.flops / static_cast<double>(w.bytes()) : 0);
  const int64_t all = tensor_bytes(*c.kernel, c.problem);
  fmt::print("  tensors of {}: {}\n", bytes_text(static_cast<double>(all)),
             level_of(all, m, c.threads));
  fmt::print("  mapping {}\n\n", e.row.mapping);
  fmt::print("  {:<12} {:>12} {:>12}   {}\n", "", "limit, us", "ceiling, us", "measured rate");
  const std::string traffic = fmt::format("{:.1f} GB/s read, {:.1f} write, {:.1f} copy",
                                          s.read * 1e-3, s.write * 1e-3, s.copy * 1e-3);
  const std::string arithmetic = fmt::format("{:.0f} GFLOP/s", e.rates.f32_flops * 1e-3);
  const bool moves = e.hoped.bound() == Resource::bandwidth;
  print_resource(cold ? "memory" : "caches", traffic.c_str(), e.least.traffic_us,
                 e.hoped.traffic_us, moves);
  print_resource("arithmetic", arithmetic.c_str(), e.least.arithmetic_us, e.hoped.arithmetic_us,
                 !moves);
  fmt::print("\n  takes {:.2f} us: {:.0f} % of the limit, {:.0f} % of the ceiling\n", e.row.time_us,
             100 * e.row.fraction, 100 * e.row.ceiling_fraction);
}

nlohmann::json to_json(const Explanation& e) {
  nlohmann::json row = measure::to_json(e.row);
  row["limit_us_of"] = {{"traffic", e.least.traffic_us}, {"arithmetic", e.least.arithmetic_us}};
  row["ceiling_us_of"] = {{"traffic", e.hoped.traffic_us}, {"arithmetic", e.hoped.arithmetic_us}};
  return row;
}

}  // namespace

int run_explain(const Arguments& a) {
  if (is_model(a.target)) return explain_model(a);
  const CpuMachine machine = Device::open("cpu:0").cpu();
  const kernels::KernelEntry& k = kernels::kernel_named(a.target);
  const BenchCase c = case_of(k, problem_of(k, a), a.threads > 0 ? a.threads : machine.cores);
  const Explanation e = explain(c, a.mapping.empty() ? Mapping{} : parse_mapping(a.mapping));
  if (shows_text(a)) print(c, e, machine);
  if (a.json) write_json(*a.json, {to_json(e)});
  return 0;
}

}  // namespace tw::cli
