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
  /// Makes ready for runs on these sets; called again whenever they moved. All sets have the same
  /// shapes. Returns one line about itself: version, kernel set. Throws when it cannot do the task.
  virtual std::string prepare(const std::vector<TensorSet>& sets) = 0;
  /// Computes the outputs of sets[set] and returns when they are complete.
  virtual void run(int set) = 0;
};

/// Which contestant to make: data, because it is made in another process.
struct ContestantSpec {
  std::string name;    ///< what tables call it, unique in a comparison
  std::string kind;    ///< "peer", or one that the program's factory knows
  std::string source;  ///< for "peer" the path of its plug-in (peer.h); else the factory's business
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

}  // namespace tw::measure
