#pragma once

#include <functional>
#include <string>
#include <sys/types.h>

#include "tw/measure/impl/message.h"

namespace tw::measure {

/// What a worker process is started with.
struct Descriptors {
  int inputs, outputs;
};

/// A process that holds one contestant. Killed by the destructor, and by the kernel when the judge
/// dies. Every failure (crash, hang, wrong reply) is a DeviceError that names the contestant, a
/// refusal a UserError; EnvError where it can't be loaded or has no memory.
class WorkerProcess {
 public:
  /// Starts `program` (empty: this one) as a worker on `threads` CPUs; the thread counts of the
  /// usual libraries are set in its environment.
  WorkerProcess(const std::string& program, const std::string& name, Descriptors shared,
                int threads);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Time in which others had the worker's CPU is not counted, up to nine times as much.
  nlohmann::json ask(const nlohmann::json& message, double timeout_s);
  /// The halves of ask(): a worker may say several things in turn.
  void tell(const nlohmann::json& message);
  nlohmann::json hear(double timeout_s);
  /// All threads of the process are off the CPU between stop() and resume().
  void stop();
  void resume();
  double cpu_s() const;     ///< CPU time of all its threads so far
  double waited_s() const;  ///< in which its first thread was ready to run, but others ran
  double wanted_s() const;  ///< CPU time of all its threads, and time in which they waited for it
  int64_t data_bytes() const;  ///< of memory that it allocated, touched or not
  /// Says what lies at an address that the contestant may not touch; "" of others.
  std::function<std::string(uint64_t address)> place_of;

 private:
  [[noreturn]] void fail(const std::string& why);
  std::string last_words();
  std::optional<nlohmann::json> receive_fairly(double timeout_s);

  std::string name_;
  pid_t pid_ = -1;
  int socket_ = -1;
};

/// Of this thread, as WorkerProcess::waited_s(). Both are 0 where the system does not count it.
double waited_s();

/// Of all CPUs of the machine since it started, in seconds (/proc/stat, in steps of 10 ms).
struct MachineTime {
  double busy = 0, stolen = 0;  // stolen: something was ready, but the host ran another machine
};

MachineTime machine_time();

}  // namespace tw::measure
