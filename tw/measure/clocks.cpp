#include "tw/measure/impl/clocks.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "tw/base/error.h"

namespace tw::measure {

// How far clocks may be apart, for messages take their time, and what a slice may take beside its
// calls.
constexpr double kClockShare = 0.02, kClockSeconds = 0.3e-3, kBesideShare = 0.05;
// How much further on a machine that others use, beyond the time in which they had the CPU.
constexpr double kDelayShare = 0.18, kDelaySeconds = 0.7e-3;
// The CPU time of a thread that runs elsewhere is counted at ticks, of 10 ms at most: late by half.
constexpr double kTickSeconds = 5e-3;

namespace {

/// Of the process, as the system counts it, but for copying while the judge was late to look.
double cpu_of_calls(const SliceTimes& s) { return s.used - std::min(s.copying, s.late + s.stolen); }

}  // namespace

double Clocks::judged(const SliceTimes& s) const {
  const double others = s.late + s.late_worker + s.stolen;
  return std::max(s.judge - s.brought - others, cpu_of_calls(s) / threads_);
}

Clocks::Gap Clocks::gap(Check check, const SliceTimes& s) const {
  const double messages = kClockShare * s.judge + kClockSeconds;
  const double load = kDelayShare * s.judge + kDelaySeconds;
  const double cpu = cpu_of_calls(s), others = s.late_worker + s.stolen;
  switch (check) {
    case kSpan: {
      const double apart = s.judge - s.span;
      return apart < 0 ? Gap{s.span, s.judge, -apart, kClockSeconds, 0}
                       : Gap{s.span, s.judge, apart, messages, load + s.late + others};
    }
    case kCpu: {
      const double ticks = kTickSeconds * (threads_ - 1);
      const double share = kClockShare * cpu;
      return {s.counted, cpu, cpu - s.counted, share + kClockSeconds + ticks, kDelaySeconds};
    }
    case kCalls: {
      // Of one thread it is the CPU time that counts where others had the CPU.
      const double told = (threads_ == 1 ? std::min(s.wall, s.cpu) : s.wall) + s.brought;
      const double share = kBesideShare * s.span + kClockShare * cpu / threads_;
      return {told, cpu / threads_, cpu / threads_ - told, share + kClockSeconds,
              kBesideShare * s.span + kDelaySeconds};
    }
    case kBeside: {
      const double calls = s.wall + s.brought;
      return {calls, s.span, std::abs(s.span - calls), kBesideShare * s.span + kClockSeconds,
              kBesideShare * s.span + others};
    }
  }
  return {};
}

bool Clocks::add(const SliceTimes& s) {
  bool agree = true;
  for (int c = 0; c < kChecks; ++c) {
    const Gap g = gap(static_cast<Check>(c), s);
    agree &= g.apart <= g.messages;
    if (g.apart <= g.messages + g.load) continue;
    ++apart_[c];
    last_apart_[c] = s;
  }
  ++slices_;
  used_ += cpu_of_calls(s);
  judge_ += s.judge;
  return agree;
}

void Clocks::expect(const std::string& name) const {
  if (used_ * (1 - kClockShare) / threads_ > judge_ + kClockSeconds * slices_)
    throw DeviceError(
        fmt::format("contestant '{}' used {:.4g} ms of CPU time in {:.4g} ms, for a task of {} "
                    "thread{}",
                    name, used_ * 1e3, judge_ * 1e3, threads_, threads_ == 1 ? "" : "s"));
  static constexpr const char* kWhat[kChecks] = {
      "from first to last call, which took the judge", "of CPU time, of which the system counted",
      "in calls, which used CPU time of", "in calls, but from first to last"};
  for (int c = 0; c < kChecks; ++c) {
    if (2 * apart_[c] <= slices_) continue;
    const Gap g = gap(static_cast<Check>(c), last_apart_[c]);
    throw DeviceError(fmt::format(
        "contestant '{}': in {} of {} slices its process counted as in the last, {:.4g} "
        "ms {} {:.4g} ms: its clock is not the judge's. If it should be, run again on a "
        "machine that others do not use",
        name, apart_[c], slices_, g.got * 1e3, kWhat[c], g.seen * 1e3));
  }
}

}  // namespace tw::measure
