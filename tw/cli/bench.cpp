#include <filesystem>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <map>
#include <sys/utsname.h>

#include "tw/base/error.h"
#include "tw/base/hash.h"
#include "tw/base/nearest.h"
#include "tw/check/contestant.h"
#include "tw/cli/call.h"
#include "tw/cli/output.h"
#include "tw/cli/verbs.h"
#include "tw/jit/compiler.h"
#include "tw/limit/limit.h"
#include "tw/measure/ceilings.h"
#include "tw/measure/compare.h"
#include "tw/measure/result.h"

namespace tw::cli {

namespace fs = std::filesystem;
using kernels::KernelEntry;
using kernels::Problem;

/// Calls whose tensors are larger than this start from memory, others from the caches.
static constexpr int64_t kWarmBytes = 64 << 20;
/// Sets of inputs of a call from memory span at least this much, so that no cache keeps them.
static constexpr int64_t kColdBytes = int64_t{1} << 30;
/// Ceilings are what small loops reached; nothing we run may be faster than this times them.
static constexpr double kRoom = 1.1;

// ------------------------------------------------------------------------------------------------
// who takes part

static std::vector<measure::ContestantSpec> installed_peers() {
  std::vector<measure::ContestantSpec> all;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path() / "peers";
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error))
    if (file.path().extension() == ".so") all.push_back({file.path().stem(), "peer", file.path()});
  std::ranges::sort(all, {}, &measure::ContestantSpec::name);
  return all;
}

static std::vector<measure::ContestantSpec> chosen_peers(const Arguments& a) {
  const std::vector<measure::ContestantSpec> installed = installed_peers();
  if (a.peers.empty()) return installed;
  std::vector<std::string> known;
  std::vector<measure::ContestantSpec> chosen;
  for (const measure::ContestantSpec& peer : installed) {
    known.push_back(peer.name);
    if (std::ranges::find(a.peers, peer.name) != a.peers.end()) chosen.push_back(peer);
  }
  for (const std::string& name : a.peers)
    if (std::ranges::find(known, name) == known.end())
      throw UserError(fmt::format("no peer is called '{}'", name), did_you_mean(name, known));
  return chosen;
}

// ------------------------------------------------------------------------------------------------
// what is asked of them

/// References of the input sets seen last: every contestant is judged on the same values.
class ReferenceMemory {
 public:
  ReferenceMemory(const KernelEntry& k, const Problem& p) : kernel_(k), problem_(p) {}
  const check::Reference& of(const std::vector<TensorView>& inputs) {
    std::string bytes;
    for (const TensorView& t : inputs)
      bytes.append(static_cast<const char*>(t.data),
                   static_cast<size_t>(byte_count(t.dtype, t.dims)));
    const uint64_t key = hash64(bytes);
    auto it = known_.find(key);
    if (it == known_.end()) {
      if (known_.size() > 8) known_.clear();
      it = known_.emplace(key, kernel_.reference(problem_, inputs)).first;
    }
    return it->second;
  }

 private:
  const KernelEntry& kernel_;
  const Problem& problem_;
  std::map<uint64_t, check::Reference> known_;
};

/// The options that differ from the kernel's defaults: what peers are told.
static std::map<std::string, std::string> unusual_options(const KernelEntry& k, const Problem& p) {
  std::map<std::string, std::string> unusual;
  for (const auto& option : k.options)
    if (p.option(option.name) != option.values.front())
      unusual[option.name] = p.option(option.name);
  return unusual;
}

static measure::Job job_of(const KernelEntry& k, const Problem& p, int threads,
                           ReferenceMemory& references) {
  measure::Job job;
  job.task = {k.name, unusual_options(k, p), threads};
  for (const kernels::Argument& a : k.arguments(p))
    (a.output ? job.outputs : job.inputs).push_back({a.name, a.dtype, a.dims, {}});
  job.fill = [](int index, const TensorView& to, uint64_t seed) {
    fill_random(to, seed * 31 + static_cast<uint64_t>(index));
  };
  job.verify = [&references](const measure::TensorSet& set, uint64_t) {
    return check::worst_error(references.of(set.inputs), set.outputs).ratio;
  };
  return job;
}

// ------------------------------------------------------------------------------------------------
// limits

/// Values of the program's dims, read off the tensors that have them.
static std::vector<int64_t> dims_of(const Program& program,
                                    const std::vector<kernels::Argument>& arguments) {
  std::vector<int64_t> dims(program.dims.size(), 0);
  for (size_t i = 0; i < program.params.size(); ++i)
    for (size_t d = 0; d < program.params[i].dims.size(); ++d) {
      const Expr& e = program.params[i].dims[d];
      if (e.kind() == Expr::Kind::symbol) dims[e.symbol().id] = arguments[i].dims[d];
    }
  return dims;
}

static Rates rates_of(const measure::Ceilings& c, double room) {
  auto bandwidth = [&](const measure::Ceilings::Stream& s) {
    return Bandwidth{s.read * room, s.write * room, s.copy * room};
  };
  return {c.f32_flops * room, bandwidth(c.memory), bandwidth(c.cache),
          fmt::format("measured by {} loops, times {}", c.loops, room)};
}

/// Ceilings of each thread count, measured once.
static const measure::Ceilings& ceilings_for(int threads) {
  static std::map<int, measure::Ceilings> known;
  auto it = known.find(threads);
  if (it == known.end()) it = known.emplace(threads, measure::measure_ceilings(threads)).first;
  return it->second;
}

// ------------------------------------------------------------------------------------------------
// rows

static std::string commit() {
  FILE* git = popen("git rev-parse --short HEAD 2>/dev/null", "r");
  char text[64] = "";
  if (git && !fgets(text, sizeof text, git)) text[0] = 0;
  if (git) pclose(git);
  std::string s = text;
  return s.substr(0, s.find('\n'));
}

static measure::Row row_about(const KernelEntry& k, const Problem& p, int threads, bool cold) {
  utsname system{};
  uname(&system);
  measure::Row row;
  row.kernel = k.name;
  row.dtype = name(p.dtype);
  for (const auto& [axis, extent] : p.shape)
    row.shape += fmt::format("{}{}={}", row.shape.empty() ? "" : ",", axis, extent);
  for (const auto& [option, value] : p.options) row.shape += fmt::format(" {}={}", option, value);
  row.threads = threads;
  row.cache = cold ? "cold" : "warm";
  row.device = Device::open("cpu:0").cpu().name;
  row.driver = fmt::format("{} {}", system.sysname, system.release);
  row.toolchain = fs::path(find_compiler().path).filename();
  row.date = fmt::format("{:%F}", fmt::gmtime(std::time(nullptr)));
  row.commit = commit();
  row.suite = "bench";
  return row;
}

static void add_limits(measure::Row& row, const Program& program,
                       const std::vector<kernels::Argument>& arguments) {
  const std::vector<int64_t> dims = dims_of(program, arguments);
  const measure::Ceilings& c = ceilings_for(row.threads);
  const Residence where = row.cache == "cold" ? Residence::memory : Residence::cache;
  const Limit least = limit(program, dims, rates_of(c, kRoom), where);
  const Limit ceiling = limit(program, dims, rates_of(c, 1), where);
  row.bytes = static_cast<double>(least.bytes);
  row.flops = least.flops;
  row.limit_us = least.time_us;
  row.bound = name(least.bound);
  row.fraction = least.time_us / row.time_us;
  row.ceiling_fraction = ceiling.time_us / row.time_us;
}

static std::vector<measure::Row> bench_problem(const KernelEntry& k, const Problem& p, int threads,
                                               const Arguments& a) {
  const std::vector<kernels::Argument> arguments = k.arguments(p);
  int64_t bytes = 0;
  for (const kernels::Argument& argument : arguments)
    bytes += byte_count(argument.dtype, argument.dims);
  const bool cold = bytes > kWarmBytes;
  const Program program = k.trace(p, Device::open("cpu:0").cpu(), threads);

  std::vector<measure::ContestantSpec> all = {check::kernel_contestant("tilewright", program)};
  for (const measure::ContestantSpec& peer : chosen_peers(a)) all.push_back(peer);
  measure::Settings settings;
  settings.cold_bytes = cold ? kColdBytes : 0;
  ReferenceMemory references(k, p);
  const measure::Comparison c = measure::compare(job_of(k, p, threads, references), all, settings);
  if (!c.all[0].failure.empty()) throw DeviceError(c.all[0].failure);

  measure::Row row = row_about(k, p, threads, cold);
  row.mapping = c.all[0].about;
  row.time_us = c.all[0].time_us.median;
  row.verified = c.all[0].verified > 0;
  row.max_err_over_bound = c.all[0].max_error;
  row.blocks = static_cast<int>(c.all[0].block_us.size());
  row.disturbed = c.disturbed;
  add_limits(row, program, arguments);

  std::vector<measure::Row> rows;
  for (size_t i = 1; i < all.size(); ++i) {
    if (!c.all[i].failure.empty()) {
      if (!a.peers.empty()) fmt::print(stderr, "{}: {}\n", all[i].name, c.all[i].failure);
      continue;
    }
    const measure::Interval ratio = c.ratio(0, static_cast<int>(i));
    rows.push_back(row);
    rows.back().peer = all[i].name;
    rows.back().peer_about = c.all[i].about;
    rows.back().peer_us = c.all[i].time_us.median;
    rows.back().ratio = ratio.median;
    rows.back().ci95[0] = ratio.low;
    rows.back().ci95[1] = ratio.high;
  }
  if (rows.empty()) rows.push_back(row);
  return rows;
}

static std::vector<Problem> problems_of(const KernelEntry& k, const Arguments& a) {
  if (!a.shape.empty() || !a.options.empty()) return {problem_of(k, a)};
  std::vector<Problem> all;
  for (const Problem& p : k.bench()) all.push_back(complete(k, p));
  return all;
}

int run_bench(const Arguments& a) {
  if (!a.target.empty()) kernels::kernel_named(a.target);
  const int threads = a.threads ? a.threads : Device::open("cpu:0").cpu().cores;
  std::vector<measure::Row> rows;
  std::vector<nlohmann::json> lines;
  for (const KernelEntry& k : kernels::kernel_list()) {
    if (!a.target.empty() && a.target != k.name) continue;
    for (const Problem& p : problems_of(k, a)) {
      fmt::print(stderr, "{} {} on {} threads\n", k.name, to_string(p), threads);
      for (measure::Row& row : bench_problem(k, p, threads, a)) {
        lines.push_back(to_json(row));
        rows.push_back(std::move(row));
      }
    }
  }
  if (!a.json || !a.json->empty()) fmt::print("{}", measure::to_table(rows));
  if (a.json) write_json(*a.json, lines);
  return 0;
}

}  // namespace tw::cli
