#pragma once

#include <string>

namespace tw::measure {

/// One slice as the process of a contestant and the judge saw it, in seconds.
struct SliceTimes {
  // As the process says: in calls, and CPU time in them; from the first call to the last, and CPU
  // time then; in which tensors got new values or were brought to where it computes; CPU time of
  // copying outputs away behind the last call.
  double wall = 0, cpu = 0, span = 0, counted = 0, brought = 0, copying = 0;
  // As the judge saw: from the message before the first call to the one behind the last, and CPU
  // time that the system counted for the process; in which the judge and the process were ready,
  // but others ran; that the host took from either.
  double judge = 0, used = 0, late = 0, late_worker = 0, stolen = 0;
};

/// Whether the clocks of a contestant's process are the judge's. Calls take the judge longer, for
/// messages take time; the process counts the CPU time that the system counts, and no less time
/// than its threads took of it; and there is little beside the calls.
class Clocks {
 public:
  explicit Clocks(int threads) : threads_(threads) {}

  /// What a slice took by the judge's reckoning: an upper bound, but for messages, of an honest
  /// contestant's time, and a lower one of what any other took.
  double judged(const SliceTimes& s) const;
  /// Takes a slice into account. False when its clocks are further apart than messages take: then
  /// judged() tells its time, so a false clock gains nothing.
  bool add(const SliceTimes& s);
  /// Throws DeviceError when the clocks of most slices are further apart than messages take on a
  /// busy machine, and for more CPU time than `threads` can take. Some slices are so on any
  /// machine, for a host that runs others does not always say so.
  void expect(const std::string& name) const;

 private:
  enum Check { kSpan, kCpu, kCalls, kBeside };
  static constexpr int kChecks = kBeside + 1;
  /// What a check compares, and how far apart messages let it be.
  struct Gap {
    double got, seen, apart, messages, load;  // load: more of it on a busy machine
  };
  Gap gap(Check check, const SliceTimes& s) const;

  int threads_, slices_ = 0;
  int apart_[kChecks] = {};
  SliceTimes last_apart_[kChecks];
  double used_ = 0, judge_ = 0;
};

}  // namespace tw::measure
