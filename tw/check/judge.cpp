#include "tw/check/judge.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <latch>
#include <random>
#include <thread>

#include "tw/base/error.h"
#include "tw/check/impl/arrangement.h"
#include "tw/check/impl/errors.h"
#include "tw/check/impl/values.h"
#include "tw/measure/contestant.h"

namespace tw::check {

namespace {

using Side = Arrangement::Side;

constexpr Values kValues[] = {Values::uniform,  Values::unit,     Values::normal,
                              Values::heavy,    Values::wide,     Values::offset,
                              Values::integers, Values::impulses, Values::special};
constexpr Layout kStrided[] = {Layout::unaligned, Layout::padded,   Layout::transposed,
                               Layout::spread,    Layout::reversed, Layout::expanded,
                               Layout::mixed};

constexpr unsigned char kPoison = 0xff, kOtherPoison = 0x7b;
constexpr double kSoon = 2e-3;     // for what comes late
constexpr double kQuiet = 0.1;     // after which nothing may run
constexpr double kMostBusy = 0.3;  // of a CPU, then
constexpr int kSoak = 100, kTurns = 25, kQuietTurns = 5, kSame = 10;
constexpr int kIndependent = 8;         // inputs
constexpr int64_t kGrowth = 256 << 10;  // of memory in kSoak calls, twice in a row

/// Threads that move memory, one for each CPU, four at most.
class Hog {
 public:
  Hog() : begun_(count()) {
    for (int i = 0; i < count(); ++i)
      threads_.emplace_back([this](const std::stop_token& stop) {
        std::string from(kBytes, 'f'), to(kBytes, 't');
        for (begun_.count_down(); !stop.stop_requested();) {
          std::memcpy(to.data(), from.data(), kBytes);
          asm volatile("" ::"r"(to.data()) : "memory");
        }
      });
    begun_.wait();
  }

 private:
  static constexpr size_t kBytes = size_t{32} << 20;
  static int count() {
    return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 4);
  }

  std::latch begun_;
  std::vector<std::jthread> threads_;
};

/// "C[3, 17]".
std::string element_name(const std::string& tensor, const TensorView& v, int64_t index) {
  std::vector<int64_t> at(v.dims.size());
  for (size_t axis = at.size(); axis-- > 0; index /= v.dims[axis]) at[axis] = index % v.dims[axis];
  return fmt::format("{}[{}]", tensor, fmt::join(at, ", "));
}

}  // namespace

/// The callable in a process, on two sets of tensors of one case.
class Judge::Session {
 public:
  Session(const Case& c, const Judge& judge, Ruling& ruling)
      : case_(c),
        ruling_(ruling),
        callee_(judge.callable_for(c), c.task,
                {judge.settings_.threads, Arrangement::bytes(c.arguments, 2),
                 judge.settings_.timeout_s, judge.settings_.worker}) {}

  void lay(Layout layout, Side side, Values values, uint64_t seed) {
    tensors_.emplace(callee_.memory(), case_.arguments, layout, side, 2);
    values_ = values;
    for (const int set : {0, 1}) {
      tensors_->fill(set, values, seed + 100 + static_cast<uint64_t>(set));
      tensors_->poison(set, kPoison);
    }
    callee_.prepare(tensors_->sets(), tensors_->pages());
  }

  /// New values, where the old ones lay.
  void ask(int set, uint64_t seed) {
    tensors_->fill(set, values_, seed);
    want_[set] = case_.reference(tensors_->sets()[static_cast<size_t>(set)].inputs);
  }

  void call(const std::vector<int>& sets) {
    ruling_.calls += static_cast<int>(sets.size());
    callee_.run(sets);
    for (const int set : sets) compare(set);
    if (const std::string damage = tensors_->damage(); !damage.empty()) throw DeviceError(damage);
  }

  std::vector<std::string> contents(int set) const { return tensors_->contents(set); }
  void poison(int set, unsigned char with) { tensors_->poison(set, with); }
  void add_to(ErrorSample& sample, int set) const {
    sample.add(want_[set], tensors_->sets()[static_cast<size_t>(set)].outputs);
  }
  /// The same question many times.
  void repeat(int set, const char* otherwise) {
    const std::vector<std::string> before = contents(set);
    for (int i = 0; i < kSame; ++i) {
      poison(set, kPoison);
      call({set});
      expect_same(set, before, otherwise);
    }
  }
  void expect_same(int set, const std::vector<std::string>& before, const char* otherwise) const {
    if (contents(set) != before) throw DeviceError(otherwise);
  }
  measure::Callee& callee() { return callee_; }

 private:
  void compare(int set) {
    const std::vector<TensorView>& outputs = tensors_->sets()[static_cast<size_t>(set)].outputs;
    const Worst worst = worst_error(want_[set], outputs);
    for (const TensorView& v : outputs) ruling_.elements += v.count();
    ruling_.worst = std::max(ruling_.worst, worst.ratio);
    if (worst.ratio <= 1) return;
    const auto o = static_cast<size_t>(worst.output);
    throw DeviceError(fmt::format("element {} is {}, wanted {}: {:.3g} times the allowed error",
                                  element_name(output_name(worst.output), outputs[o], worst.index),
                                  get(outputs[o], worst.index),
                                  want_[set].outputs[o].value[static_cast<size_t>(worst.index)],
                                  worst.ratio));
  }

  std::string output_name(int output) const {
    for (const Argument& a : case_.arguments)
      if (a.output && output-- == 0) return a.name;
    throw InternalError("no such output");
  }

  const Case& case_;
  Ruling& ruling_;
  measure::Callee callee_;
  std::optional<Arrangement> tensors_;
  Values values_ = Values::uniform;
  Reference want_[2];
};

/// The calls on one arrangement.
template <class Session>
static void question(Session& s, uint64_t seed) {
  s.ask(0, seed);
  s.call({0});
  const std::vector<std::string> first = s.contents(0);
  s.callee().linger(kSoon);
  s.expect_same(0, first, "an output changed after its call had returned");
  s.ask(1, seed + 10);
  s.call({1});
  s.expect_same(0, first, "a call changed the output of another");
  s.poison(0, kOtherPoison);
  s.call({0});
  s.expect_same(0, first, "a second call on the same inputs gives other bits");
  s.ask(0, seed + 20);  // over the older result
  s.call({0});
}

Judge::Judge(measure::ContestantSpec callable, Settings settings)
    : callable_(std::move(callable)), settings_(std::move(settings)) {
  if (settings_.seed == 0) settings_.seed = std::random_device{}();
  ruling_.seed = settings_.seed;
}

measure::ContestantSpec Judge::callable_for(const Case& c) const {
  measure::ContestantSpec spec = callable_;
  if (!c.source.empty()) spec.source = c.source;
  return spec;
}

/// Runs steps of a case, and whether it took the case; a fault of the callable is recorded.
template <class F>
bool Judge::guarded(const Case& c, F&& step) {
  if (!ruling_.fault.empty()) return false;
  std::string where = c.label;
  try {
    step(where);
    return true;
  } catch (const DeviceError& e) {
    ruling_.fault = where + ": " + e.message();
  } catch (const UserError& e) {
    ruling_.refusals.push_back(where + ": " + e.message());
  }
  return false;
}

bool Judge::check(const Case& c) {
  ruling_.cases += ruling_.fault.empty();
  return guarded(c, [&](std::string& where) {
    Session s(c, *this, ruling_);
    uint64_t seed = settings_.seed;
    int turn = 0;
    const auto run = [&](Layout layout, Values values) {
      where = fmt::format("{}, {} {}", c.label, name(layout), name(values));
      s.lay(layout, turn++ % 2 == 0 ? Side::end : Side::begin, values, seed += 1000);
      question(s, seed);
    };
    try {
      for (const Values v : kValues) run(Layout::contiguous, v);
    } catch (const UserError&) {
      ++ruling_.refused;
      throw;
    }
    where = c.label + ", independent inputs";
    judge_errors(c, s, seed += 1000);
    for (const Layout layout : kStrided) {
      try {
        run(layout, Values::uniform);
      } catch (const UserError&) {
        continue;  // a clean no
      }
    }
  });
}

void Judge::judge_errors(const Case& c, Session& s, uint64_t seed) {
  ErrorSample sample;
  s.lay(Layout::contiguous, Side::end, Values::normal, seed);
  for (int i = 0; i < kIndependent; ++i) {
    s.ask(0, seed + static_cast<uint64_t>(i) * c.arguments.size());
    s.call({0});
    s.add_to(sample, 0);
  }
  const std::vector<OutputErrors> found = sample.found();
  ruling_.errors.resize(std::max(ruling_.errors.size(), found.size()));
  for (size_t o = 0; o < found.size(); ++o) {
    OutputErrors& most = ruling_.errors[o];
    most.e2 = std::max(most.e2, found[o].e2);
    most.e9999 = std::max(most.e9999, found[o].e9999);
    most.most = std::max(most.most, found[o].most);
    most.of_allowed = std::max(most.of_allowed, found[o].of_allowed);
    if (found[o].of_allowed > 1)
      throw DeviceError(fmt::format(
          "errors of output {} have a root mean square of {:.3g} times what they may have", o,
          found[o].of_allowed));
  }
}

bool Judge::endure(const Case& c) {
  return guarded(c, [&](std::string& where) {
    const auto fresh = [&](Session& s) {
      s.lay(Layout::contiguous, Side::end, Values::normal, settings_.seed);
      s.ask(0, settings_.seed);
      s.call({0});
      return s.contents(0);
    };
    std::vector<std::string> before;
    {
      Session other(c, *this, ruling_);
      before = fresh(other);
    }
    Session s(c, *this, ruling_);
    fresh(s);
    s.expect_same(0, before, "another process gives other bits");
    s.repeat(0, "a call on the same inputs gives other bits");
    where = c.label + ", memory busy";
    {
      const Hog hog;
      s.repeat(0, "a call on the same inputs gives other bits");
    }
    uint64_t seed = settings_.seed + 1;
    where = c.label + ", two threads at once";
    for (int turn = 0; turn < kTurns; ++turn) {
      s.ask(0, ++seed);
      s.ask(1, ++seed);
      s.call({0, 1});
    }
    where = c.label + ", many calls";
    int64_t grown[2];
    for (int64_t& g : grown) {
      const int64_t start = s.callee().data_bytes();
      for (int i = 0; i < kSoak; ++i) {
        s.ask(i % 2, ++seed);
        s.call({i % 2});
      }
      g = s.callee().data_bytes() - start;
    }
    if (std::min(grown[0], grown[1]) >= kGrowth)
      throw DeviceError(
          fmt::format("its memory grows by {} bytes a call", (grown[0] + grown[1]) / (2 * kSoak)));
    where = c.label + ", after its calls";
    // What it does at the end of its calls is done in one of the first turns, however many others
    // want the CPU; what turns for ever wants it in all.
    double busy = HUGE_VAL;
    for (int turn = 0; turn < kQuietTurns && busy > kMostBusy; ++turn)
      busy = std::min(busy, s.callee().linger(kQuiet) / kQuiet);
    if (busy > kMostBusy)
      throw DeviceError(
          fmt::format("it keeps {:.0f} % of a CPU busy when no call is under way", busy * 100));
  });
}

bool Judge::time(const Case& c, double least_us) {
  measure::Job job;
  job.task = c.task;
  job.task.threads = settings_.threads;
  std::vector<Argument> inputs;
  for (const Argument& a : c.arguments) {
    (a.output ? job.outputs : job.inputs)
        .push_back({a.name, a.dtype, a.dims, {}, a.domain == Domain::sorted});
    if (!a.output) inputs.push_back(a);
  }
  job.fill = [&](int input, const TensorView& to, uint64_t seed) {
    const std::vector<double> elements =
        input_values(inputs[static_cast<size_t>(input)], Values::uniform, seed);
    for (size_t i = 0; i < elements.size(); ++i) set(to, static_cast<int64_t>(i), elements[i]);
  };
  job.verify = [&](const measure::TensorSet& s, uint64_t) {
    return worst_error(c.reference(s.inputs), s.outputs).ratio;
  };
  return guarded(c, [&](std::string& where) {
    where += ", timed";
    measure::Settings timing = settings_.timing;
    timing.worker = settings_.worker;
    timing.all_values = true;
    timing.seed = settings_.seed;
    timing.timeout_s = settings_.timeout_s;
    const measure::Measured m = measure::compare(job, {callable_for(c)}, timing).all[0];
    if (m.refused) throw UserError(m.failure);
    if (!m.failure.empty()) throw DeviceError(m.failure);
    ruling_.time_us = m.time_us.median;
    ruling_.timed = m.verified;
    ruling_.worst = std::max(ruling_.worst, m.max_error);
    if (m.time_us.median < least_us)
      throw DeviceError(fmt::format("a call takes {:.4g} us, the least possible is {:.4g}",
                                    m.time_us.median, least_us));
  });
}

}  // namespace tw::check
