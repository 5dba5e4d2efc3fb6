#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <sys/utsname.h>
#include <utility>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/check/contestant.h"
#include "tw/cli/bench_job.h"
#include "tw/jit/compiler.h"
#include "tw/measure/ceilings.h"
#include "tw/runtime/device.h"

namespace tw::cli {

using measure::Ceilings;
using measure::Measured;
using measure::Row;

namespace {

std::string first_line_of(const std::string& command) {
  std::string line;
  if (FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r")) {
    char text[256];
    if (std::fgets(text, sizeof text, pipe) != nullptr) line = text;
    pclose(pipe);
  }
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line.empty() ? "unknown" : line;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::tm calendar;
  gmtime_r(&now, &calendar);
  std::strftime(text, sizeof text, "%Y-%m-%d", &calendar);
  return text;
}

/// What all rows of a run share.
Row row_of_run(const std::string& suite, const CpuMachine& machine) {
  Row r;
  utsname system;
  uname(&system);
  r.device = fmt::format("{}, {}, {} cores", machine.name, machine.isa, machine.cores);
  r.driver = fmt::format("{} {}", system.sysname, system.release);
  r.toolchain = first_line_of("'" + find_compiler().path + "' --version");
  r.date = today();
  r.commit = env(Env::commit);
  if (r.commit.empty()) r.commit = first_line_of("git rev-parse --short HEAD");
  r.suite = suite;
  return r;
}

/// Rates of what was measured, times a margin each.
Rates rates_of(const Ceilings& c, double arithmetic, double memory, double cache) {
  const auto times = [](const Ceilings::Stream& s, double margin) {
    return Bandwidth{s.read * margin, s.write * margin, s.copy * margin};
  };
  Rates r = vector_rates(c.f32_flops * arithmetic);
  r.memory = times(c.memory, memory);
  r.cache = times(c.cache, cache);
  return r;
}

/// The clock of a guest is not to be had and a neighbour may slow every measurement, so the limit
/// is what was measured times a margin that no undisturbed run exceeds.
Rates limit_rates(const Ceilings& c) {
  Rates r = rates_of(c, 1.1, 1.5, 3);
  r.source = "measured, times 1.1 (arithmetic), 1.5 (memory), 3 (caches)";
  return r;
}

Rates ceiling_rates(const Ceilings& c) {
  Rates r = rates_of(c, 1, 1, 1);
  r.source = "measured";
  return r;
}

class Runner {
 public:
  explicit Runner(const BenchPlan& plan)
      : plan_(plan),
        machine_(Device::open("cpu:0").cpu()),
        shared_(row_of_run(plan.suite, machine_)) {
    const std::vector<std::string> found = peers_found();
    for (const std::string& p : plan.peers)
      if (std::ranges::find(found, p) == found.end())
        throw UserError(fmt::format("no peer is called '{}' in {}", p, peer_folder()),
                        did_you_mean(p, found));
  }

  std::vector<Row> run(const BenchCase& c) {
    const Program program = program_of(c, machine_);
    measure::Comparison result =
        compare(c, program, c.against ? std::vector<std::string>{} : plan_.peers);
    if (c.against) {
      BenchCase other = c;
      other.problem.dtype = *c.against;
      Measured peer = compare(other, program_of(other, machine_), {}).all[0];
      peer.name = fmt::format("tilewright {}", name(*c.against));
      result.all.push_back(std::move(peer));
    }
    Row row = row_of_case(c, program, result.all[0]);
    row.disturbed = result.disturbed;
    std::vector<Row> rows;
    for (size_t i = 1; i < result.all.size(); ++i) {
      const Measured& peer = result.all[i];
      if (plan_.peers_named && peer.refused)
        throw UserError(peer.failure, "name another --peer, or none");
      if (!peer.failure.empty()) continue;
      rows.push_back(with_peer(row, peer, result.ratio(0, static_cast<int>(i))));
      rows.back().chance = result.chance(0, static_cast<int>(i));
    }
    if (rows.empty()) return {row};
    std::ranges::stable_sort(rows, {}, &Row::peer_us);
    if (plan_.best_only) rows.resize(1);
    return rows;
  }

  Explanation explain(const BenchCase& c) {
    const Program program = program_of(c, machine_);
    const Row row = run(c)[0];
    const Ceilings& measured = ceilings(c.threads);
    const std::vector<int64_t> dims = dims_of(program, c);
    return {row, measured, limit(program, dims, limit_rates(measured), c.inputs),
            limit(program, dims, ceiling_rates(measured), c.inputs)};
  }

 private:
  /// Ours first, then the peers.
  measure::Comparison compare(const BenchCase& c, const Program& program,
                              const std::vector<std::string>& peers) const {
    std::vector<measure::ContestantSpec> who = {
        check::kernel_contestant("tilewright", program, plan_.mapping)};
    for (const std::string& p : peers) who.push_back({p, "peer", peer_folder() + "/" + p + ".so"});
    measure::Settings settings = plan_.settings;
    settings.cold_bytes = c.inputs == Residence::memory ? kColdBytes : 0;
    measure::Comparison result = measure::compare(job_of(c), who, settings);
    if (const std::string& why = result.all[0].failure; !why.empty())
      throw DeviceError(fmt::format("{} {}: {}", c.kernel->name, shape_text(c), why));
    return result;
  }

  const Ceilings& ceilings(int threads) {
    auto [at, fresh] = ceilings_.try_emplace(threads);
    if (fresh) at->second = measure::measure_ceilings(threads, plan_.settings.worker);
    return at->second;
  }

  /// Rates grow when a neighbour was busy as they were measured.
  void measure_ceilings_again(int threads) {
    const Ceilings more = measure::measure_ceilings(threads, plan_.settings.worker);
    Ceilings& known = ceilings_.at(threads);
    known.f32_flops = std::max(known.f32_flops, more.f32_flops);
    for (auto [to, from] : {std::pair{&known.memory, &more.memory}, {&known.cache, &more.cache}})
      *to = {std::max(to->read, from->read), std::max(to->write, from->write),
             std::max(to->copy, from->copy)};
  }

  void add_limits(Row& r, const BenchCase& c, const Program& program) {
    const std::vector<int64_t> dims = dims_of(program, c);
    const Ceilings& measured = ceilings(c.threads);
    const Limit least = limit(program, dims, limit_rates(measured), c.inputs);
    const Limit hoped = limit(program, dims, ceiling_rates(measured), c.inputs);
    r.bytes = static_cast<double>(least.work.bytes());
    r.flops = least.work.flops;
    r.limit_us = least.time_us();
    r.bound = name(least.bound());
    r.fraction = least.time_us() / r.time_us;
    r.ceiling_fraction = hoped.time_us() / r.time_us;
  }

  Row row_of_case(const BenchCase& c, const Program& program, const Measured& ours) {
    Row r = shared_;
    r.kernel = c.kernel->name;
    r.shape = shape_text(c);
    r.dtype = name(c.problem.dtype);
    r.threads = c.threads;
    r.cache = c.inputs == Residence::memory ? "cold" : "warm";
    r.mapping = ours.about;
    r.time_us = ours.time_us.median;
    r.time_ci95[0] = ours.time_us.low;
    r.time_ci95[1] = ours.time_us.high;
    r.verified = ours.verified > 0;
    r.max_err_over_bound = ours.max_error;
    r.blocks = static_cast<int>(ours.block_us.size());
    add_limits(r, c, program);
    for (int again = 0; r.fraction > 1 && again < 3; ++again) {
      measure_ceilings_again(c.threads);
      add_limits(r, c, program);
    }
    if (r.fraction > 1)
      throw InternalError(fmt::format("{} {} took {:.3g} us, the least possible is {:.3g}",
                                      r.kernel, r.shape, r.time_us, r.limit_us));
    return r;
  }

  static Row with_peer(Row r, const Measured& peer, const measure::Interval& ratio) {
    r.peer = peer.name;
    r.peer_about = peer.about;
    r.peer_us = peer.time_us.median;
    r.ratio = ratio.median;
    r.ci95[0] = ratio.low;
    r.ci95[1] = ratio.high;
    return r;
  }

  const BenchPlan& plan_;
  CpuMachine machine_;
  Row shared_;
  std::map<int, Ceilings> ceilings_;
};

}  // namespace

std::string shape_text(const BenchCase& c) {
  std::string text;
  for (const auto& [axis, extent] : c.problem.shape)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis, extent);
  for (const auto& [option, value] : c.problem.options)
    text += fmt::format(" {}={}", option, value);
  if (!c.transposed.empty()) text += fmt::format(" transposed={}", fmt::join(c.transposed, "+"));
  return text;
}

std::string peer_folder() {
  std::error_code unused;
  const auto command = std::filesystem::read_symlink("/proc/self/exe", unused);
  for (const auto& folder : {command.parent_path(), command.parent_path().parent_path()})
    if (std::filesystem::is_directory(folder / "peers", unused)) return folder / "peers";
  return command.parent_path() / "peers";
}

std::vector<std::string> peers_found() {
  std::vector<std::string> names;
  std::error_code unused;
  for (const auto& file : std::filesystem::directory_iterator(peer_folder(), unused))
    if (file.path().extension() == ".so") names.push_back(file.path().stem().string());
  std::ranges::sort(names);
  return names;
}

void run_plan(const BenchPlan& plan, const std::function<void(const std::string&)>& progress,
              const std::function<void(std::vector<Row>)>& done) {
  Runner runner(plan);
  for (const BenchCase& c : plan.cases) {
    progress(fmt::format("{} {} {}, {} thread{}, {}", c.kernel->name, shape_text(c),
                         name(c.problem.dtype), c.threads, c.threads == 1 ? "" : "s",
                         c.inputs == Residence::memory ? "cold" : "warm"));
    done(runner.run(c));
  }
}

Explanation explain(const BenchCase& c, const Mapping& mapping) {
  BenchPlan plan{"explain", {c}, {}};
  plan.mapping = mapping;
  return Runner(plan).explain(c);
}

}  // namespace tw::cli
