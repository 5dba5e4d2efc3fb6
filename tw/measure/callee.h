#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tw/measure/contestant.h"

namespace tw::measure {

/// A contestant in a process of its own that is called on tensors of this process: for judging what
/// it computes, not how fast. Its process cannot reach this one but through the shared memory, and
/// may not do what a plug-in may not (see compare()). Every failure of a call is a DeviceError that
/// says what happened; after one the callee is gone. A refusal is a UserError.
class Callee {
 public:
  struct Settings {
    int threads = 1;
    int64_t bytes = 0;      ///< of the shared memory
    double timeout_s = 30;  ///< for one answer
    std::string worker;     ///< program that calls serve_worker(); "": this program
  };
  Callee(const ContestantSpec& spec, const Task& task, const Settings& settings);
  ~Callee();
  Callee(const Callee&) = delete;
  Callee& operator=(const Callee&) = delete;

  /// The shared memory as this process sees it, on whole pages.
  char* memory() const;
  int64_t bytes() const;

  /// A range of whole pages, [begin, end) in bytes of the memory. What the contestant does there
  /// beyond its access ends it, and the error says `name`.
  enum class Access { none, read };
  struct Pages {
    int64_t begin, end;
    Access access;
    std::string name;
  };
  /// Gives the contestant sets of tensors, whose data lie in memory(). All pages not named can be
  /// written. Returns what it says about itself.
  std::string prepare(const std::vector<TensorSet>& sets, std::vector<Pages> pages);

  /// Calls it on these sets, each from a thread of its own when they are several, and returns when
  /// all calls did. Then its process stands still.
  void run(const std::vector<int>& sets);
  /// Lets its process go on for so long, and returns how much CPU time it used.
  double linger(double for_s);
  /// Of memory that the process allocated.
  int64_t data_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tw::measure
