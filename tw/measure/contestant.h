#pragma once

#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tw/tensor/tensor.h"

namespace tw::measure {

/// The tensors of one call.
struct TensorSet {
  std::vector<TensorView> inputs, outputs;
};

/// What every contestant is asked to compute, on how many threads.
struct Task {
  std::string op;                              ///< a kernel of the library, e.g. "gemm"
  std::map<std::string, std::string> options;  ///< of that kernel, e.g. epilogue=bias_gelu
  int threads = 1;
};

/// Somebody who can do a task. Lives in a worker process of its own, which is stopped while others
/// are timed.
class Contestant {
 public:
  virtual ~Contestant() = default;
  /// Makes ready for runs on these sets as they are; called again whenever they moved. All have the
  /// same shapes. Returns one line about itself: version, kernel set. Throws when it cannot do the
  /// task.
  virtual std::string prepare(const std::vector<TensorSet>& sets) = 0;
  /// Computes the outputs of sets[set]; they are complete when it returns, or deliver() does.
  virtual void run(int set) = 0;

  /// For one that computes elsewhere than where the sets lie, as on a GPU. Brings there what the
  /// tensors of a set hold.
  virtual void bring(int /*set*/) {}
  /// By the thread that ran it: brings a set's outputs back as soon as its run is complete.
  virtual void deliver(int /*set*/) {}
  /// Brings back the outputs of all sets as they are by now. Throws DeviceError when those of
  /// calls, inputs or memory beside tensors have changed since.
  virtual void settle() {}
};

/// Which contestant to make: data, because it is made in another process.
struct ContestantSpec {
  std::string name;    ///< what tables call it, unique in a comparison
  std::string kind;    ///< "peer", or one that the program's factory knows
  std::string source;  ///< for "peer" the path of its plug-in (peer.h); else the factory's business
  std::string worker = {};  ///< program that calls serve_worker() for it; "": that of Settings
};

using Factory = std::function<std::unique_ptr<Contestant>(const ContestantSpec&, const Task& task)>;

/// Seconds on one of the system's clocks; a test can script it.
using Clock = std::function<double(clockid_t)>;
double seconds(clockid_t clock);

/// Every program that calls compare() starts with this: when it was started as a worker it serves
/// its parent, then returns the exit code; otherwise nullopt. `factory` makes the kinds other than
/// "peer"; calls are timed on `clock`.
std::optional<int> serve_worker(int argc, char** argv, const Factory& factory,
                                const Clock& clock = seconds);

/// The contestant in a plug-in: one that exports `tw_peer`, or `tw_ejected`, the address of a
/// function that `tilewright eject` wrote. Throws EnvError when it does not load, UserError when it
/// does not know the task.
std::unique_ptr<Contestant> load_peer(const ContestantSpec& spec, const Task& task);

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
  /// Lets its process go on for so long, and returns how much CPU time it used or waited for.
  double linger(double for_s);
  /// Of memory that the process allocated.
  int64_t data_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tw::measure
