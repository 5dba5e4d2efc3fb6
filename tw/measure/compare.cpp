#include "tw/measure/compare.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <random>
#include <set>

#include "tw/base/error.h"
#include "tw/measure/impl/worker_process.h"

namespace tw::measure {

namespace {

using nlohmann::json;

constexpr double kForeignShare = 0.05;  // of CPU time in a block
constexpr double kTickError = 0.02;     // /proc/stat counts ticks of 10 ms on each CPU
constexpr double kMostWaiting = 1.03;   // wall over CPU time of a slice on one thread
constexpr int kWarmSets = 3, kMostSets = 256, kMostCalls = 1 << 24;

struct Slice {
  double wall_us = 0, cpu_us = 0;  // of one call
};

/// One contestant with its process; out of the race once it failed.
struct Racer {
  Measured result;
  std::unique_ptr<WorkerProcess> process;
  int64_t calls = 1;  // of one slice
  std::vector<Slice> slices;
  bool in() const { return result.failure.empty(); }
  double median_us() const { return median(result.block_us); }
};

class Race {
 public:
  Race(const Job& job, const std::vector<ContestantSpec>& specs, const Settings& settings)
      : job_(job),
        settings_(settings),
        exchange_(job.inputs, job.outputs, count_sets(job, settings)),
        random_(0) {
    out_.seed = settings.seed != 0 ? settings.seed : std::random_device{}();
    random_.seed(out_.seed);
    out_.sets = exchange_.sets();
    exchange_.create();
    fill();
    for (const ContestantSpec& spec : specs) {
      Racer& racer = racers_.emplace_back();
      racer.result.name = spec.name;
      guarded(racer, [&] { open(racer, spec); });
    }
  }

  Comparison run() {
    for (Racer& r : racers_) guarded(r, [&] { calibrate(r); });
    const int every = std::max(1, settings_.blocks / std::max(1, settings_.refreshes));
    for (int b = 0; b < settings_.blocks || (b < settings_.most_blocks && !settled()); ++b) {
      if (b > 0 && b % every == 0) refresh();
      while (!block(out_.repeated >= settings_.repeats)) ++out_.repeated;
      if (b == 1 && settings_.leave_behind > 0) leave_slow_behind();
    }
    for (Racer& r : racers_) {
      if (r.in()) r.result.time_us = median_interval(r.result.block_us);
      out_.all.push_back(std::move(r.result));
    }
    return std::move(out_);
  }

 private:
  static int count_sets(const Job& job, const Settings& settings) {
    int64_t one = 0;
    for (const auto* specs : {&job.inputs, &job.outputs})
      for (const TensorSpec& t : *specs) one += span_bytes(t);
    const int64_t wanted = settings.cold_bytes / std::max<int64_t>(one, 1) + 1;
    return static_cast<int>(std::clamp<int64_t>(wanted, kWarmSets, kMostSets));
  }

  /// The fastest but the first that is still in; null when there is none.
  const Racer* fastest_peer() const {
    const Racer* fastest = nullptr;
    for (size_t i = 1; i < racers_.size(); ++i) {
      const Racer& r = racers_[i];
      if (r.in() && (fastest == nullptr || r.median_us() < fastest->median_us())) fastest = &r;
    }
    return fastest;
  }

  /// Whether more blocks would tell little. It looks at how far the ratios spread, not at what they
  /// are, so that no result is more welcome than another.
  bool settled() const {
    const Racer* fastest = fastest_peer();
    if (fastest == nullptr || !racers_[0].in()) return true;
    const Interval r = ratio_of_blocks(racers_[0].result.block_us, fastest->result.block_us);
    return r.high - r.low <= settings_.width * r.median;
  }

  void fill() {
    for (int s = 0; s < exchange_.sets(); ++s)
      for (size_t i = 0; i < job_.inputs.size(); ++i)
        job_.fill(static_cast<int>(i), exchange_.input(s, static_cast<int>(i)), random_());
    verify_seeds_.resize(static_cast<size_t>(exchange_.sets()));
    for (uint64_t& seed : verify_seeds_) seed = random_();
    place_seed_ = random_();
  }

  /// Runs a step of one contestant; a failure takes it out and ends its process.
  template <class F>
  void guarded(Racer& r, F&& step) {
    if (!r.in()) return;
    try {
      step();
    } catch (const Error& e) {
      r.result.failure = e.message();
      r.result.refused = dynamic_cast<const UserError*>(&e) != nullptr;
      r.process.reset();
    }
  }

  void open(Racer& r, const ContestantSpec& spec) {
    const std::string& program = spec.worker.empty() ? settings_.worker : spec.worker;
    r.process = std::make_unique<WorkerProcess>(program, spec.name, exchange_.descriptor(),
                                                job_.task.threads);
    json m = {{"do", "open"},
              {"name", spec.name},
              {"kind", spec.kind},
              {"source", spec.source},
              {"op", job_.task.op},
              {"options", job_.task.options},
              {"sets", out_.sets},
              {"threads", job_.task.threads},
              {"inputs", json::array()},
              {"outputs", json::array()}};
    for (const TensorSpec& t : job_.inputs) m["inputs"].push_back(to_json(t));
    for (const TensorSpec& t : job_.outputs) m["outputs"].push_back(to_json(t));
    r.process->ask(m, settings_.timeout_s);
    place(r);
    r.process->stop();
  }

  /// The same seed for everybody: nobody has luckier addresses.
  void place(Racer& r) {
    r.result.about =
        r.process->ask({{"do", "place"}, {"seed", place_seed_}}, settings_.timeout_s).at("about");
  }

  void refresh() {
    fill();
    for (Racer& r : racers_)
      guarded(r, [&] {
        r.process->resume();
        place(r);
        r.process->stop();
      });
  }

  /// How many calls fill a slice.
  void calibrate(Racer& r) {
    r.process->resume();
    double wall = 0;
    for (r.calls = 1; r.calls < kMostCalls; r.calls *= 4) {
      wall = ask_run(r, 1).at("wall");
      if (wall > settings_.slice_s / 4) break;
    }
    const double calls = static_cast<double>(r.calls) * settings_.slice_s / wall;
    r.calls = std::llround(std::clamp<double>(calls, 1, kMostCalls));
    r.process->stop();
  }

  void leave_slow_behind() {
    const Racer* fastest = fastest_peer();
    if (fastest == nullptr) return;
    const double best = fastest->median_us();
    for (size_t i = 1; i < racers_.size(); ++i)
      guarded(racers_[i], [&] {
        if (const double times = racers_[i].median_us() / best; times > settings_.leave_behind)
          throw DeviceError(
              fmt::format("left behind: takes {:.2f} times as long as the best", times));
      });
  }

  json ask_run(Racer& r, int64_t warm) {
    const double start = seconds(CLOCK_MONOTONIC);
    const json reply =
        r.process->ask({{"do", "run"}, {"calls", r.calls}, {"warm", warm}, {"seed", random_()}},
                       settings_.timeout_s);
    if (reply.at("wall").get<double>() > seconds(CLOCK_MONOTONIC) - start)
      throw DeviceError("the clock of its process runs faster than the judge's");
    return reply;
  }

  Slice time_slice(Racer& r) {
    r.process->resume();
    // One call more or less, so that nobody knows which of his calls are timed.
    const int64_t few = static_cast<int64_t>(1 + random_() % 2);
    const int64_t warm = out_.sets > kWarmSets ? few : std::max<int64_t>(few, r.calls / 8 + few);
    const json reply = ask_run(r, warm);
    const double wall = reply.at("wall"), cpu = reply.at("cpu");
    const std::vector<int> check = reply.at("check");
    for (int set : std::set<int>(check.begin(), check.end())) verify(r, set);
    r.process->stop();
    const double calls_per_us = static_cast<double>(r.calls) * 1e-6;
    return {wall / calls_per_us, cpu / calls_per_us};
  }

  void verify(Racer& r, int set) {
    r.process->ask({{"do", "keep"}, {"set", set}}, settings_.timeout_s);
    TensorSet tensors;
    for (int i = 0; i < static_cast<int>(job_.inputs.size()); ++i)
      tensors.inputs.push_back(exchange_.input(set, i));
    for (int i = 0; i < static_cast<int>(job_.outputs.size()); ++i)
      tensors.outputs.push_back(exchange_.output(i));
    const double error = job_.verify(tensors, verify_seeds_[set]);
    r.result.max_error = std::max(r.result.max_error, error);
    ++r.result.verified;
    if (!(error <= 1))
      throw DeviceError(
          fmt::format("contestant '{}' is wrong: a timed output has {:.3g} times the allowed error",
                      r.result.name, error));
  }

  /// CPU time that nobody of ours used since the machine started.
  double foreign_cpu() const {
    double sum = machine_cpu_s() - seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (const Racer& r : racers_)
      if (r.process) sum -= r.process->cpu_s();
    return sum;
  }

  bool preempted(const Slice& s) const {
    return job_.task.threads == 1 && s.wall_us > s.cpu_us * kMostWaiting;
  }

  /// The mean of a block's slices. A slice on one thread that stayed disturbed counts its CPU time,
  /// which other processes do not lengthen by taking turns.
  double block_us(const Racer& r) const {
    double sum = 0;
    for (const Slice& s : r.slices) sum += preempted(s) ? s.cpu_us : s.wall_us;
    return sum / static_cast<double>(r.slices.size());
  }

  std::vector<Racer*> abba() {
    std::vector<Racer*> order;
    for (Racer& r : racers_)
      if (r.in()) order.push_back(&r);
    std::shuffle(order.begin(), order.end(), random_);
    for (size_t i = order.size(); i-- > 0;) order.push_back(order[i]);
    return order;
  }

  /// Times everybody twice. False when the block was disturbed and `keep` is not set.
  bool block(bool keep) {
    for (Racer& r : racers_) r.slices.clear();
    const double foreign = foreign_cpu(), start = seconds(CLOCK_MONOTONIC);
    bool disturbed = false;
    for (Racer* r : abba())
      guarded(*r, [&] {
        r->slices.push_back(time_slice(*r));
        disturbed |= preempted(r->slices.back());
      });
    const double wall = seconds(CLOCK_MONOTONIC) - start;
    disturbed |= foreign_cpu() - foreign > kForeignShare * wall + kTickError;
    if (disturbed && !keep) return false;
    out_.disturbed += disturbed;
    for (Racer& r : racers_)
      if (r.in()) r.result.block_us.push_back(block_us(r));
    return true;
  }

  const Job& job_;
  const Settings& settings_;
  Exchange exchange_;
  std::mt19937_64 random_;
  uint64_t place_seed_ = 0;
  std::vector<uint64_t> verify_seeds_;  // one a set of inputs
  std::vector<Racer> racers_;
  Comparison out_;
};

}  // namespace

Comparison compare(const Job& job, const std::vector<ContestantSpec>& contestants,
                   const Settings& settings) {
  return Race(job, contestants, settings).run();
}

}  // namespace tw::measure
