// Whether the guard (tw/measure/change.h) finds a slowdown of 3 % that was planted, and finds
// nothing where nothing changed: a run for a log. Usage: regressions [RUNS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>

#include "tw/check/contestant.h"
#include "tw/cli/bench_job.h"
#include "tw/measure/change.h"
#include "tw/runtime/device.h"

namespace {

using namespace tw;
using measure::Contestant, measure::ContestantSpec, measure::TensorSet;

constexpr double kPlanted = 0.03;

/// The kernel, and after each call idle turns, so long that calls take a share longer.
class Slowed : public Contestant {
 public:
  explicit Slowed(std::unique_ptr<Contestant> kernel) : kernel_(std::move(kernel)) {}

  std::string prepare(const std::vector<TensorSet>& sets) override {
    std::string about = kernel_->prepare(sets);
    sets_ = static_cast<int>(sets.size());
    idle_s_ = 0;
    call_s();
    const double alone = call_s(), wanted = kPlanted * alone;
    idle_s_ = wanted;
    for (int i = 0; i < 2; ++i) idle_s_ = std::max(0.0, idle_s_ + wanted - (call_s() - alone));
    return about;
  }
  void run(int set) override {
    kernel_->run(set);
    if (idle_s_ == 0) return;
    const double start = measure::seconds(CLOCK_MONOTONIC);
    while (measure::seconds(CLOCK_MONOTONIC) - start < idle_s_) continue;
  }

 private:
  /// Of a call among others; the quickest ones were not disturbed.
  double call_s() {
    constexpr int kBatches = 30, kCalls = 10;
    std::vector<double> times;
    for (int batch = 0; batch < kBatches; ++batch) {
      const double start = measure::seconds(CLOCK_MONOTONIC);
      for (int i = 0; i < kCalls; ++i) run(i % sets_);
      times.push_back((measure::seconds(CLOCK_MONOTONIC) - start) / kCalls);
    }
    std::ranges::sort(times);
    return times[kBatches / 5];
  }

  std::unique_ptr<Contestant> kernel_;
  int sets_ = 1;
  double idle_s_ = 0;
};

std::unique_ptr<Contestant> make(const ContestantSpec& spec, const measure::Task& task) {
  if (spec.kind != "slowed") return check::make_contestant(spec, task);
  return std::make_unique<Slowed>(check::make_contestant({spec.name, "kernel", spec.source}, task));
}

cli::BenchCase case_of(const char* kernel, std::map<std::string, int64_t> shape) {
  const kernels::KernelEntry& k = kernels::kernel_named(kernel);
  return cli::case_of(k, kernels::complete(k, {std::move(shape), f32, {}}), 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = measure::serve_worker(argc, argv, make)) return *code;
  const int runs = argc > 1 ? std::atoi(argv[1]) : 20;
  const CpuMachine machine = Device::open("cpu:0").cpu();
  const std::vector<cli::BenchCase> cases = {case_of("gemm", {{"m", 256}, {"n", 256}, {"k", 256}}),
                                             case_of("softmax", {{"m", 256}, {"n", 1024}}),
                                             case_of("layernorm", {{"m", 256}, {"n", 1024}})};
  int found = 0, false_alarms = 0, disturbed = 0;
  for (int i = 0; i < runs; ++i)
    for (const char* kind : {"slowed", "kernel"}) {
      const cli::BenchCase& c = cases[static_cast<size_t>(i) % cases.size()];
      const ContestantSpec before = check::kernel_contestant("before", cli::program_of(c, machine));
      ContestantSpec after = before;
      after.name = "after";
      after.kind = kind;
      const double start = measure::seconds(CLOCK_MONOTONIC);
      const measure::Change change = measure::change_between(cli::job_of(c), before, after);
      const bool slower = change.verdict() == measure::Verdict::slower;
      (after.kind == "slowed" ? found : false_alarms) += slower;
      disturbed += change.disturbed;
      std::puts(
          fmt::format("{:<10} {}: {:.4f} [{:.4f},{:.4f}] of {:.1f} us, {} rounds, {:.1f} s: {}",
                      c.kernel->name, after.kind == "slowed" ? "3 % slower" : "unchanged",
                      change.ratio.median, change.ratio.low, change.ratio.high, change.before_us,
                      change.rounds.size(), measure::seconds(CLOCK_MONOTONIC) - start,
                      slower ? "SLOWER" : "equal")
              .c_str());
      std::fflush(stdout);
    }
  std::puts(fmt::format("planted: {} of {} found; unchanged: {} of {} false alarms; {} blocks "
                        "stayed disturbed",
                        found, runs, false_alarms, runs, disturbed)
                .c_str());
  return found == runs && false_alarms == 0 ? 0 : 1;
}
