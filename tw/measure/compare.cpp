#include "tw/measure/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <random>

#include "tw/base/error.h"
#include "tw/measure/impl/clocks.h"
#include "tw/measure/impl/exchange.h"
#include "tw/measure/impl/worker_process.h"

namespace tw::measure {

namespace {

using nlohmann::json;

constexpr double kForeignShare = 0.05;  // of CPU time in a block
constexpr double kTickError = 0.02;     // /proc/stat counts ticks of 10 ms on each CPU
constexpr double kMostWaiting = 1.03;   // wall over CPU time of a slice on one thread
constexpr int kWarmSets = 3, kMostSets = 256, kMostCalls = 1 << 24;

// Inputs change before every so many calls as take this long, for a hundredth of it.
constexpr double kChunkSeconds = 30e-6, kStirShare = 0.01, kPairSeconds = 400e-9;
constexpr double kSlowestCopy = 0.5e-9;  // seconds a byte, to believe that values change so long
constexpr double kLeastClock = 0.95;     // of the processor's fastest
constexpr int kLeastVerified = 4;        // outputs of a contestant, however long references take

struct Slice {
  double wall_us = 0, cpu_us = 0;  // of one call
  bool clocks_agree = true;
};

/// How many steps a microsecond does a loop whose steps wait for one another: a number that only
/// the processor's clock changes. The best of a few, for others may interrupt.
double clock_rate() {
  constexpr int kSteps = 100000, kTries = 5;
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const double start = seconds(CLOCK_MONOTONIC);
    uint64_t x = 1;
    for (int k = 0; k < kSteps; ++k) {
      x += static_cast<uint64_t>(k);
      asm volatile("" : "+r"(x));
    }
    best = std::max(best, 1e-6 * kSteps / (seconds(CLOCK_MONOTONIC) - start));
  }
  return best;
}

/// One contestant with its process; out of the race once it failed.
struct Racer {
  explicit Racer(int threads) : clocks(threads) {}
  Measured result;
  bool plugin = false;
  std::unique_ptr<WorkerProcess> process;
  int64_t calls = 1;  // of one slice
  double call_s = 0;
  std::vector<Slice> slices;
  Clocks clocks;
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
    for (const TensorSpec& t : job.inputs) input_bytes_ += static_cast<double>(span_bytes(t));
    for (const TensorSpec& t : job.inputs)
      scratch_.push_back(host_tensor(u8, {std::max<int64_t>(span_bytes(t), 1)}));
    fill();
    for (const ContestantSpec& spec : specs) {
      Racer& racer = racers_.emplace_back(job.task.threads);
      racer.result.name = spec.name;
      guarded(racer, [&] { open(racer, spec); });
    }
  }

  Comparison run() {
    start_s_ = seconds(CLOCK_MONOTONIC);
    for (Racer& r : racers_) guarded(r, [&] { calibrate(r); });
    const int every = std::max(1, settings_.blocks / std::max(1, settings_.refreshes));
    for (int b = 0; b < settings_.blocks || (b < settings_.most_blocks && !settled()); ++b) {
      if (b > 0 && b % every == 0) refresh();
      while (!block(out_.repeated >= settings_.repeats)) ++out_.repeated;
      if (b == 1 && settings_.leave_behind > 0) leave_slow_behind();
    }
    if (fastest_clock_ > 0) out_.least_clock = slowest_clock_ / fastest_clock_;
    for (Racer& r : racers_) {
      guarded(r, [&] { r.clocks.expect(r.result.name); });
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
    place_seed_ = random_();
    stir_seed_ = random_();
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
    const Descriptors shared{exchange_.inputs_descriptor(), exchange_.outputs_descriptor()};
    const std::string& program = spec.worker.empty() ? settings_.worker : spec.worker;
    r.process = std::make_unique<WorkerProcess>(program, spec.name, shared, job_.task.threads);
    r.plugin = spec.kind == "peer";
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
    const json m = {{"do", "place"}, {"seed", place_seed_}, {"stir", stir_seed_}};
    r.result.about = r.process->ask(m, settings_.timeout_s).at("about");
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

  /// How many calls fill a slice. The lesser of two times, without what others took: a call that
  /// was interrupted would make slices short and pauses between calls many.
  void calibrate(Racer& r) {
    r.process->resume();
    for (r.calls = 1; r.calls < kMostCalls; r.calls *= 4) {
      const double wall = std::min(undisturbed(ask_run(r, r.calls, 1).times),
                                   undisturbed(ask_run(r, r.calls, 1).times));
      r.call_s = wall / static_cast<double>(r.calls);
      if (wall > settings_.slice_s / 4) break;
    }
    const double calls = settings_.slice_s / r.call_s;
    r.calls = std::llround(std::clamp<double>(calls, 1, kMostCalls));
    r.process->stop();
  }

  double undisturbed(const SliceTimes& t) const {
    return std::max({t.wall - t.late_worker - t.stolen, t.cpu / job_.task.threads, 1e-9});
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

  /// What a worker said of its calls, and what the judge saw of them.
  struct Run {
    json reply;
    SliceTimes times;
  };

  Run ask_run(Racer& r, int64_t calls, int64_t warm) {
    const double chunk = std::clamp(std::ceil(kChunkSeconds / std::max(r.call_s, 1e-9)), 1.0, 1e6);
    const double touched = std::min<double>(chunk, out_.sets) *
                           static_cast<double>(std::max<size_t>(1, job_.inputs.size()));
    const double pairs = chunk * r.call_s * kStirShare / kPairSeconds / touched;
    r.process->tell({{"do", "run"},
                     {"calls", calls},
                     {"warm", warm},
                     {"chunk", static_cast<int64_t>(chunk)},
                     {"pairs", static_cast<int64_t>(std::clamp(pairs, 1.0, 1e6))},
                     {"turns", settings_.all_values},
                     {"seed", random_()}});
    r.process->hear(settings_.timeout_s);
    const double late = waited_s(), late_worker = r.process->waited_s();
    const double stolen = machine_time().stolen;
    const double cpu = r.process->cpu_s(), start = seconds(CLOCK_MONOTONIC);
    r.process->tell({{"go", "on"}});
    r.process->hear(settings_.timeout_s);
    Run run;
    SliceTimes& t = run.times;
    t.judge = seconds(CLOCK_MONOTONIC) - start;
    t.used = r.process->cpu_s() - cpu;
    t.late = waited_s() - late;
    t.late_worker = r.process->waited_s() - late_worker;
    t.stolen = std::min(t.judge, machine_time().stolen - stolen);
    r.process->tell({{"go", "on"}});
    run.reply = r.process->hear(settings_.timeout_s);
    t.wall = run.reply.at("wall");
    t.cpu = run.reply.at("cpu");
    t.span = run.reply.at("span");
    // Workers of earlier versions say no more.
    t.counted = run.reply.value("counted", t.cpu + t.span - t.wall);
    t.brought = paused(r, run.reply, calls, chunk);
    t.copying = run.reply.value("copying", 0.0);
    return run;
  }

  /// In which tensors got new values or were brought to where it computes. A plug-in computes where
  /// they are, and is not believed that copying takes long.
  double paused(const Racer& r, const json& reply, int64_t calls, double chunk) const {
    const double brought = reply.value("brought", 0.0);
    const double pauses = settings_.all_values ? reply.value("pauses", brought) : brought;
    if (!r.plugin) return pauses;
    if (!settings_.all_values) return 0;
    const double sets =
        std::ceil(static_cast<double>(calls) / chunk) * std::min<double>(chunk, out_.sets);
    return std::min(pauses, sets * input_bytes_ * kSlowestCopy);
  }

  Slice time_slice(Racer& r) {
    r.process->resume();
    // A few calls more or less, so that nobody knows which of his calls are timed.
    const int64_t few = static_cast<int64_t>(1 + random_() % 2);
    const int64_t warm = out_.sets > kWarmSets ? few : std::max<int64_t>(few, r.calls / 8 + few);
    const int64_t calls =
        r.calls + static_cast<int64_t>(random_() % static_cast<uint64_t>(r.calls / 8 + 1));
    const Run run = ask_run(r, calls, warm);
    int slot = 0;
    for (const json& kept : run.reply.at("kept")) verify(r, kept.at("set"), state_of(kept), slot++);
    r.process->stop();
    const double calls_per_us = static_cast<double>(calls) * 1e-6;
    if (r.clocks.add(run.times))
      return {run.times.wall / calls_per_us, run.times.cpu / calls_per_us};
    const double judged = r.clocks.judged(run.times) / calls_per_us;
    return {judged, judged, false};
  }

  /// Some references take long: no more of them than the time for timing allows, beyond a few.
  bool verifies(const Racer& r) const {
    return r.result.verified < kLeastVerified ||
           verify_s_ < (seconds(CLOCK_MONOTONIC) - start_s_) / 2;
  }

  static Stirrer::State state_of(const json& kept) {
    // Workers of earlier versions say no more.
    return {kept.at("pairs"), kept.value("turns", int64_t{0}),
            kept.value("pairs_then", int64_t{0})};
  }

  /// The inputs of a set as they were in that state.
  std::vector<TensorView> inputs_in(int set, const Stirrer::State& state) {
    std::vector<TensorView> inputs, first;
    for (int i = 0; i < static_cast<int>(job_.inputs.size()); ++i) {
      inputs.push_back(view_of(job_.inputs[i], scratch_[i].view().data));
      first.push_back(exchange_.input(set, i));
      std::memcpy(inputs.back().data, first.back().data, span_bytes(job_.inputs[i]));
    }
    Stirrer(job_.inputs, stir_seed_ + static_cast<uint64_t>(set)).replay(inputs, first, state);
    return inputs;
  }

  void verify(Racer& r, int set, const Stirrer::State& state, int slot) {
    if (!verifies(r)) return;
    const double start = seconds(CLOCK_MONOTONIC);
    TensorSet tensors{inputs_in(set, state), {}};
    for (int i = 0; i < static_cast<int>(job_.outputs.size()); ++i)
      tensors.outputs.push_back(exchange_.output(slot, i));
    const double error = job_.verify(tensors, random_());
    r.result.max_error = std::max(r.result.max_error, error);
    ++r.result.verified;
    verify_s_ += seconds(CLOCK_MONOTONIC) - start;
    if (!(error <= 1))
      throw DeviceError(
          fmt::format("contestant '{}' is wrong: a timed output has {:.3g} times the allowed error",
                      r.result.name, error));
  }

  /// CPU time that nobody of ours used since the machine started.
  double foreign_cpu() const {
    const MachineTime machine = machine_time();
    double sum = machine.busy + machine.stolen - seconds(CLOCK_PROCESS_CPUTIME_ID);
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

  /// Whether the processor runs about as fast as it did.
  bool full_clock() {
    const double rate = clock_rate();
    fastest_clock_ = std::max(fastest_clock_, rate);
    slowest_clock_ = slowest_clock_ > 0 ? std::min(slowest_clock_, rate) : rate;
    return rate >= kLeastClock * fastest_clock_;
  }

  /// Times everybody twice. False when the block was disturbed and `keep` is not set.
  bool block(bool keep) {
    for (Racer& r : racers_) r.slices.clear();
    const double foreign = foreign_cpu(), start = seconds(CLOCK_MONOTONIC);
    bool disturbed = false;
    for (Racer* r : abba())
      guarded(*r, [&] {
        r->slices.push_back(time_slice(*r));
        disturbed |= preempted(r->slices.back()) || !r->slices.back().clocks_agree;
      });
    const double wall = seconds(CLOCK_MONOTONIC) - start;
    disturbed |= foreign_cpu() - foreign > kForeignShare * wall + kTickError || !full_clock();
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
  uint64_t place_seed_ = 0, stir_seed_ = 0;
  std::vector<Tensor> scratch_;  // the inputs of one set
  double input_bytes_ = 0;
  double start_s_ = 0, verify_s_ = 0, fastest_clock_ = 0, slowest_clock_ = 0;
  std::vector<Racer> racers_;
  Comparison out_;
};

}  // namespace

Comparison compare(const Job& job, const std::vector<ContestantSpec>& contestants,
                   const Settings& settings) {
  return Race(job, contestants, settings).run();
}

}  // namespace tw::measure
