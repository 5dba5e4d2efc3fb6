#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tw/check/verify.h"
#include "tw/measure/compare.h"

namespace tw::check {

/// One problem that a callable is asked to solve.
struct Case {
  std::string label;  ///< "m=64,n=64,k=64 f32"
  measure::Task task;
  std::vector<Argument> arguments;
  std::function<Reference(std::span<const TensorView> inputs)> reference;
  std::string source = {};  ///< of the callable, where it has one for each case
};

/// Whether a check of this case can tell right from wrong: the reference is changed in one way at a
/// time (other inputs, rows moved, zeros, the mean; each input zeroed, scaled, shortened by a
/// tenth, rounded to fewer bits), rounded as a result would be, and must be rejected on some of the
/// values that inputs hold.
struct Audit {
  int mutants = 0;
  std::vector<std::string> passed;  ///< those that no values told from the reference
};
Audit audit(const Case& c, uint64_t seed = 1);

/// How far an output is from its reference over eight independent inputs. s: root mean square of
/// the distances of results from their elementwise mean over these inputs.
struct OutputErrors {
  double e2 = 0;          ///< root mean square of errors, in s
  double e9999 = 0;       ///< 99.99 % of errors are at most so much of max(|result|, s)
  double most = 0;        ///< and all of them
  double of_allowed = 0;  ///< root mean square of errors / of what they may be
};

/// What a judge found.
struct Ruling {
  std::string fault;                  ///< why the callable is rejected; "" when it is accepted
  int cases = 0;                      ///< asked
  int refused = 0;                    ///< that it said it does not do
  std::vector<std::string> refusals;  ///< where, and why as it says
  int calls = 0;
  int64_t elements = 0;              ///< compared
  double worst = 0;                  ///< largest error / bound
  std::vector<OutputErrors> errors;  ///< of each output, the largest of all cases
  double time_us = 0;                ///< of one call, where it was timed
  int timed = 0;                     ///< outputs of timed calls that were verified
  uint64_t seed = 0;                 ///< of all values
};

/// Judges a callable of which nothing is believed: each case in a process of its own, confined when
/// it is a plug-in. All values of inputs and layouts of tensors; elements within check::bound of
/// the reference; guard pages, patterns around outputs and in gaps, inputs that cannot be written;
/// inputs that change after it was made ready and again in place; outputs that hold poison, other
/// poison, or an older result; the same bits again, while memory is busy, and in another process;
/// outputs that stay as they are when the call returned and when others are made; two threads at
/// once; many calls, whose memory does not grow; nothing left running. A case or layout that it
/// refuses is no fault. All ends with the first fault.
class Judge {
 public:
  struct Settings {
    int threads = 1;
    double timeout_s = 20;  ///< for one call
    std::string worker;     ///< program that calls serve_worker(); "": this program
    uint64_t seed = 0;      ///< 0: from the system, as it must be for a judge
    measure::Settings timing = {};
  };
  Judge(measure::ContestantSpec callable, Settings settings);

  // Each says whether the callable took the case, and did as it should.
  bool check(const Case& c);
  /// In another process, from two threads, many times, and what is left running.
  bool endure(const Case& c);
  /// Times it in measure::compare(), alone: outputs of timed calls, clocks, threads. A call that
  /// takes less than `least_us` is a fault, for no machine is as fast.
  bool time(const Case& c, double least_us = 0);
  const Ruling& ruling() const { return ruling_; }

 private:
  class Session;
  void judge_errors(const Case& c, Session& s, uint64_t seed);
  measure::ContestantSpec callable_for(const Case& c) const;
  template <class F>
  bool guarded(const Case& c, F&& step);

  measure::ContestantSpec callable_;
  Settings settings_;
  Ruling ruling_;
};

}  // namespace tw::check
