#include "tw/measure/impl/worker_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/runtime/device.h"

extern char** environ;

namespace tw::measure {

namespace {

/// What runs between fork and exec: system calls only, everything else was made before.
struct Start {
  std::string program;
  std::vector<std::string> environment;
  std::vector<char*> environment_pointers;
  cpu_set_t cpus;
  int socket;
  Descriptors shared;

  [[noreturn]] void run() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sched_setaffinity(0, sizeof cpus, &cpus);
    // Libraries chat on standard output, which is the judge's.
    dup2(STDERR_FILENO, STDOUT_FILENO);
    // All may lie where another goes; copies above do not.
    const int from[] = {socket, shared.inputs, shared.outputs};
    const int to[] = {kWorkerSocket, kWorkerInputs, kWorkerOutputs};
    int above[3];
    for (int i = 0; i < 3; ++i) above[i] = fcntl(from[i], F_DUPFD, 64);
    for (int i = 0; i < 3; ++i) {
      dup2(above[i], to[i]);
      close(above[i]);
    }
    char flag[32] = {};
    std::strncpy(flag, kWorkerFlag, sizeof flag - 1);
    char* arguments[] = {program.data(), flag, nullptr};
    execve(program.c_str(), arguments, environment_pointers.data());
    _exit(127);
  }
};

/// The last `threads` CPUs that this process may use: the first ones serve interrupts.
cpu_set_t choose_cpus(int threads) {
  cpu_set_t allowed, chosen;
  CPU_ZERO(&allowed);
  CPU_ZERO(&chosen);
  sched_getaffinity(0, sizeof allowed, &allowed);
  if (threads > CPU_COUNT(&allowed))
    throw UserError(
        fmt::format("{} threads were asked for, {} CPUs are usable", threads, CPU_COUNT(&allowed)));
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && CPU_COUNT(&chosen) < threads; --cpu)
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &chosen);
  return chosen;
}

/// OpenBLAS gives a model that it does not know the kernels of its oldest: it is told a core with
/// the instruction set of this machine, whose kernels for f32 are those of all later ones.
std::string openblas_core() {
  const std::string& isa = Device::open("cpu:0").cpu().isa;
  return isa == "avx512" ? "SkylakeX" : isa == "avx2" ? "Haswell" : "";
}

std::vector<std::string> environment_for(int threads) {
  std::vector<std::string> out;
  const std::string counts[] = {"OMP_NUM_THREADS=", "OPENBLAS_NUM_THREADS=", "BLIS_NUM_THREADS="};
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string entry = *e;
    bool replaced = false;
    for (const std::string& name : counts) replaced |= entry.rfind(name, 0) == 0;
    if (!replaced) out.push_back(entry);
  }
  for (const std::string& name : counts) out.push_back(name + std::to_string(threads));
  const std::string core = "OPENBLAS_CORETYPE=";
  const bool said = std::ranges::any_of(out, [&](auto& entry) { return entry.starts_with(core); });
  const std::string known = said ? "" : openblas_core();
  if (!known.empty()) out.push_back(core + known);
  return out;
}

}  // namespace

WorkerProcess::WorkerProcess(const std::string& program, const std::string& name,
                             Descriptors shared, int threads)
    : name_(name) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw EnvError(fmt::format("cannot make a socket pair: {}", std::strerror(errno)));
  Start start{program.empty() ? "/proc/self/exe" : program,
              environment_for(threads),
              {},
              choose_cpus(threads),
              ends[1],
              shared};
  for (std::string& e : start.environment) start.environment_pointers.push_back(e.data());
  start.environment_pointers.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) start.run();
  close(ends[1]);
  socket_ = ends[0];
  if (pid_ < 0) {
    close(socket_);
    throw EnvError(fmt::format("cannot start a worker process: {}", std::strerror(errno)));
  }
}

WorkerProcess::~WorkerProcess() {
  close(socket_);
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

nlohmann::json WorkerProcess::ask(const nlohmann::json& message, double timeout_s) {
  tell(message);
  return hear(timeout_s);
}

void WorkerProcess::tell(const nlohmann::json& message) {
  if (!send(socket_, message)) fail(last_words());
}

nlohmann::json WorkerProcess::hear(double timeout_s) {
  std::optional<nlohmann::json> reply;
  try {
    reply = receive_fairly(timeout_s);
  } catch (const DeviceError& e) {
    fail(e.message());
  }
  if (!reply) fail(last_words());
  if (reply->contains("refusal")) throw UserError(reply->at("refusal"));
  if (reply->contains("unusable")) throw EnvError(reply->at("unusable"), reply->at("hint"));
  if (reply->contains("error")) fail(reply->at("error"));
  if (reply->contains("fault")) {
    const uint64_t address = reply->at("fault");
    const std::string place = place_of ? place_of(address) : "";
    last_words();
    fail(place.empty() ? fmt::format("it touched address {:#x}, which it may not", address)
                       : place);
  }
  return *reply;
}

std::optional<nlohmann::json> WorkerProcess::receive_fairly(double timeout_s) {
  constexpr double kMostPatience = 9;
  const double least = 0.02 * timeout_s;  // to be waked takes some time itself
  double waited = waited_s(), left = timeout_s, more = kMostPatience * timeout_s;
  while (!can_receive(socket_, left)) {
    left = std::min(waited_s() - waited, more);
    waited += left;
    more -= left;
    if (left <= least) throw DeviceError(fmt::format("no answer within {} s", timeout_s));
  }
  return receive(socket_, timeout_s);
}

void WorkerProcess::stop() {
  kill(pid_, SIGSTOP);
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT) < 0 &&
         errno == EINTR)
    continue;
}

void WorkerProcess::resume() { kill(pid_, SIGCONT); }

void WorkerProcess::fail(const std::string& why) {
  throw DeviceError(fmt::format("contestant '{}' failed: {}", name_, why));
}

std::string WorkerProcess::last_words() {
  int status = 0;
  const pid_t pid = std::exchange(pid_, -1);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status))
    return fmt::format("its process was ended by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("its process ended with status {}", WEXITSTATUS(status));
}

double WorkerProcess::cpu_s() const {
  clockid_t clock;
  return clock_getcpuclockid(pid_, &clock) == 0 ? seconds(clock) : 0;
}

/// What the system counts of a task: CPU time, then time in which it waited for a CPU.
static double waited_of(const std::string& task) {
  std::ifstream file(task + "/schedstat");
  int64_t ran = 0, waited = 0;
  file >> ran >> waited;
  return file ? 1e-9 * static_cast<double>(waited) : 0;
}

double WorkerProcess::waited_s() const { return waited_of(fmt::format("/proc/{}", pid_)); }

double WorkerProcess::wanted_s() const {
  double sum = cpu_s();
  std::error_code gone;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid_), gone))
    sum += waited_of(task.path());
  return sum;
}

double waited_s() { return waited_of("/proc/thread-self"); }

int64_t WorkerProcess::data_bytes() const {
  std::ifstream statm(fmt::format("/proc/{}/statm", pid_));
  int64_t size = 0, resident = 0, shared = 0, text = 0, none = 0, data = 0;
  statm >> size >> resident >> shared >> text >> none >> data;
  return data * sysconf(_SC_PAGESIZE);
}

MachineTime machine_time() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0;
  stat >> cpu >> user >> nice >> system >> idle >> wait >> irq >> soft >> steal;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return {(user + nice + system + irq + soft) / ticks, steal / ticks};
}

}  // namespace tw::measure
