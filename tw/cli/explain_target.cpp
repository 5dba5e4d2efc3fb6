#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/cli/bench_job.h"
#include "tw/cli/call.h"
#include "tw/cli/explain.h"
#include "tw/cli/gpu_ceilings.h"
#include "tw/cli/output.h"
#include "tw/cli/rows.h"
#include "tw/emit/cuda/emit_cuda.h"
#include "tw/jit/kernel.h"

namespace tw::cli {

namespace {

constexpr const char* kResults = "bench/results";

bool is_described_cpu(const std::string& device) {
  return device == "avx2" || device == "avx512" || device == "neon";
}

/// What the compiler made of a kernel for a GPU, and how it lies on it.
struct Built {
  std::string mapping;
  int threads = 0, cluster = 1, registers = 0, resident = 0;
  int64_t spill_bytes = 0, shared_bytes = 0, blocks = 0;
  double waves = 0, occupancy = 0;
};

/// Addresses that no call uses: tensors of the case one after the other.
struct Tensors {
  std::vector<TensorView> inputs, outputs;
};
Tensors tensors_of(const BenchCase& c) {
  constexpr int64_t kGap = 256;
  Tensors t;
  uintptr_t at = uintptr_t{1} << 40;
  for (const kernels::Argument& a : c.kernel->arguments(c.problem)) {
    TensorView v{reinterpret_cast<void*>(at), a.dtype, a.dims, contiguous_strides(a.dims, a.dtype)};
    at += static_cast<uintptr_t>(round_up(byte_count(a.dtype, a.dims) + 1, kGap));
    (a.output ? t.outputs : t.inputs).push_back(std::move(v));
  }
  return t;
}

int64_t instances_of(const Program& p, const BenchCase& c) {
  const std::vector<int64_t> dims = dims_of(p, c);
  int64_t n = 1;
  for (const Expr& extent : p.grid)
    n *= std::max<int64_t>(evaluate(extent, [&](Symbol s) { return dims[s.id]; }), 0);
  return n;
}

Built build(const BenchCase& c, const Program& p, const Device& device, const Arguments& a) {
  CompileOptions options;
  if (!a.mapping.empty()) options.mapping = parse_mapping(a.mapping);
  const Kernel kernel = compile(p, device, options);
  const Tensors t = tensors_of(c);
  const GpuMachine& m = device.gpu();
  const LaunchSpec spec = kernel.launch_spec(t.inputs, t.outputs);
  const CompiledCuda made = compile_cuda(m.arch, kernel.source(t.inputs, t.outputs));
  Built b{.mapping = kernel.mapping(),
          .threads = spec.threads,
          .cluster = spec.cluster,
          .registers = made.registers,
          .spill_bytes = made.spill_bytes,
          .shared_bytes = spec.shared_bytes + made.shared_bytes};
  b.resident = resident_blocks(m, b.threads, b.registers, b.shared_bytes);
  b.blocks = std::min(instances_of(p, c) * spec.cluster, most_blocks(spec, m));
  b.occupancy = static_cast<double>(b.resident * b.threads) / m.max_threads;
  if (b.resident > 0) b.waves = static_cast<double>(b.blocks) / (b.resident * m.multiprocessors);
  return b;
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// Kernel, shape and options of the call as a row says them: its program where it has one, since
/// its kernel is then a name of the benchmark's own.
std::set<std::string> call_of(const nlohmann::json& row) {
  return words_of(row.value("program", row.value("kernel", "") + " " + row.value("shape", "")));
}

/// Whether the row is one of the case; options that it leaves out are the usual ones.
bool is_of(const nlohmann::json& row, const BenchCase& c, const std::string& device) {
  if (row.value("dtype", "") != name(c.problem.dtype)) return false;
  if (!row.value("device", "").starts_with(device)) return false;
  std::set<std::string> theirs = call_of(row);
  const std::set<std::string> ours = words_of(c.kernel->name + (" " + shape_text(c)));
  for (const auto& option : c.kernel->options) {
    const bool said = std::ranges::any_of(theirs, [&](const std::string& w) {
      return w.starts_with(std::string(option.name) + "=");
    });
    if (!said) theirs.insert(fmt::format("{}={}", option.name, option.values.front()));
  }
  return ours == theirs;
}

/// The latest row of the case; nothing where there is none.
std::optional<nlohmann::json> row_of_case(const Arguments& a, const BenchCase& c,
                                          const std::string& device) {
  std::optional<nlohmann::json> latest;
  std::vector<nlohmann::json> rows = rows_of("--rows", a.rows);
  if (a.rows.empty() && std::filesystem::is_directory(kResults)) rows = rows_in(kResults, kResults);
  for (nlohmann::json& row : rows)
    if (is_of(row, c, device) && (!latest || row.value("date", "") >= latest->value("date", "")))
      latest = std::move(row);
  return latest;
}

void print(const Built& b) {
  fmt::print(
      "  mapping {}\n  {} registers, {} bytes spilled, {} threads, {} bytes of shared memory"
      "{}\n",
      b.mapping, b.registers, b.spill_bytes, b.threads, b.shared_bytes,
      b.cluster > 1 ? fmt::format(", clusters of {}", b.cluster) : "");
  fmt::print("  {} block{} a multiprocessor: {:.0f} % of its threads; {} blocks, {:.2f} waves\n",
             b.resident, b.resident == 1 ? "" : "s", 100 * b.occupancy, b.blocks, b.waves);
}

/// Everything that is said of a call.
struct TargetExplanation {
  std::string device;
  BenchCase c;
  Rates stated;
  std::optional<Rates> reached;
  Limit least;
  std::optional<Limit> hoped;
  std::optional<Built> built;
  std::optional<nlohmann::json> row;
};

void print(const TargetExplanation& e) {
  fmt::print("{} {} {}, on {}, inputs in memory\n", e.c.kernel->name, shape_text(e.c),
             name(e.c.problem.dtype), e.device);
  print_work(e.least.work);
  if (e.built) print(*e.built);
  fmt::print("  limit: {}; ceiling: {}\n\n", e.stated.source,
             e.reached ? e.reached->source : "not known");
  print_limits(e.least, e.hoped);
  if (!e.row) return;
  const double us = e.row->at("time_us");
  fmt::print("\n  took {:.2f} us ({}, {}): {:.0f} % of the limit", us, e.row->value("date", ""),
             e.row->value("commit", ""), 100 * e.least.time_us() / us);
  if (e.hoped) fmt::print(", {:.0f} % of the ceiling", 100 * e.hoped->time_us() / us);
  fmt::print("\n");
}

nlohmann::json to_json(const TargetExplanation& e) {
  nlohmann::json j = {{"kernel", e.c.kernel->name},       {"shape", shape_text(e.c)},
                      {"dtype", name(e.c.problem.dtype)}, {"device", e.device},
                      {"bytes", e.least.work.bytes()},    {"flops", e.least.work.flops},
                      {"limit_us", e.least.time_us()},    {"bound", name(e.least.bound())}};
  for (size_t u = 0; u < kUnits; ++u)
    if (e.least.work.ops[u] > 0) j["operations"][name(static_cast<Unit>(u))] = e.least.work.ops[u];
  add_limits(j, e.least, e.hoped);
  if (e.hoped) j["ceiling_us"] = e.hoped->time_us();
  if (const std::optional<Built>& b = e.built)
    j.update({{"mapping", b->mapping},
              {"registers", b->registers},
              {"spill_bytes", b->spill_bytes},
              {"threads", b->threads},
              {"cluster", b->cluster},
              {"shared_bytes", b->shared_bytes},
              {"blocks", b->blocks},
              {"blocks_resident", b->resident},
              {"occupancy", b->occupancy},
              {"waves", b->waves}});
  if (e.row) j["time_us"] = e.row->at("time_us");
  if (e.row) j["fraction"] = e.least.time_us() / e.row->at("time_us").get<double>();
  return j;
}

TargetExplanation explain_gpu(const BenchCase& c, const Arguments& a) {
  const bool here = a.device.starts_with("cuda:");
  const Device device = here ? Device::open(a.device) : Device::open_as(gpu_named(a.device));
  const GpuMachine& m = device.gpu();
  const Program p = c.kernel->trace(c.problem, device.target());
  const std::vector<int64_t> dims = dims_of(p, c);
  const std::optional<Rates> reached =
      here ? std::optional(rates_of(measure_gpu(device))) : reached_rates(m);
  TargetExplanation e{m.name, c, datasheet_rates(m), reached, {}, {}, {}, {}};
  e.least = limit(p, dims, e.stated, c.inputs);
  if (e.reached) e.hoped = limit(p, dims, *e.reached, c.inputs);
  e.built = build(c, p, device, a);
  e.row = row_of_case(a, c, m.name);
  return e;
}

TargetExplanation explain_cpu(const BenchCase& c, const Arguments& a) {
  const CpuMachine& m = machine_named(a.device);
  expect_no_rows(a);
  const int threads = a.threads > 0 ? a.threads : m.cores;
  if (threads > m.cores)
    throw UserError(fmt::format("--threads got {}", threads),
                    fmt::format("the {} has {} cores", m.name, m.cores));
  const Program p = c.kernel->trace(c.problem, {m, threads});
  const Rates stated = datasheet_rates(m, threads);
  return {fmt::format("{}, {} threads", m.name, threads), c,  stated, {},
          limit(p, dims_of(p, c), stated, c.inputs),      {}, {},     {}};
}

}  // namespace

bool is_target(const std::string& device) {
  return device.starts_with("cuda:") || device.starts_with("sm_") || is_gpu_name(device) ||
         is_described_cpu(device);
}

int explain_target(const Arguments& a) {
  const kernels::KernelEntry& k = kernels::kernel_named(a.target);
  BenchCase c = case_of(k, problem_of(k, a), 1);
  c.inputs = Residence::memory;
  const TargetExplanation e = is_described_cpu(a.device) ? explain_cpu(c, a) : explain_gpu(c, a);
  if (shows_text(a)) print(e);
  if (a.json) write_json(*a.json, {to_json(e)});
  return 0;
}

}  // namespace tw::cli
