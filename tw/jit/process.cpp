#include "tw/jit/process.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace tw {

/// True when the process ended in time.
static bool wait_until_done(pid_t pid, int seconds) {
  int descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0) return true;  // an old kernel: the wait that follows has no limit
  pollfd p{descriptor, POLLIN, 0};
  int ready;
  do ready = poll(&p, 1, seconds * 1000);
  while (ready < 0 && errno == EINTR);
  close(descriptor);
  return ready != 0;
}

static int status_of(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// What runs between vfork and exec, in the memory of the caller, whose thread waits: system calls
/// only, everything else was made before. Not posix_spawn, which cannot tie the child to its
/// parent.
struct Start {
  std::vector<char*> words, environment;
  const char* output;
  int seconds;
  int error = 0;  ///< why it did not start

  [[noreturn]] void run() {
    // A group of its own lets a compiler that hangs be ended with the processes that it started.
    // These outlive the parent's death, but not the limit on their time.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const rlimit limit{static_cast<rlim_t>(seconds), static_cast<rlim_t>(seconds)};
    setrlimit(RLIMIT_CPU, &limit);
    // The parent's handlers must not run here, and threads of the pool block all signals.
    struct sigaction action;
    for (int s = 1; s < NSIG; ++s) {
      if (sigaction(s, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
      action.sa_handler = SIG_DFL;
      action.sa_flags = 0;
      sigaction(s, &action, nullptr);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int out = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (in >= 0 && out >= 0 && place(in, 0) && place(out, 1) && place(out, 2)) {
      execve(words[0], words.data(), environment.data());
    }
    error = errno;
    _exit(127);
  }

  /// dup2 that also clears close-on-exec where both are the same.
  static bool place(int from, int to) {
    return from == to ? fcntl(to, F_SETFD, 0) == 0 : dup2(from, to) == to;
  }
};

static pid_t start_process(Start& start) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = vfork();
  if (pid == 0) start.run();
  if (pid < 0) start.error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid > 0 && start.error != 0) status_of(pid);
  return pid;
}

/// Ours, with messages in English, which the caller reads.
static std::vector<std::string> environment_of_child() {
  std::vector<std::string> entries = {"LC_ALL=C"};
  for (char** e = environ; e && *e; ++e) {
    if (std::strncmp(*e, "LC_ALL=", 7) != 0) entries.push_back(*e);
  }
  return entries;
}

static std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> found;
  for (std::string& text : texts) found.push_back(text.data());
  found.push_back(nullptr);
  return found;
}

Finished run_process(const std::vector<std::string>& command, const std::string& output,
                     int seconds) {
  std::vector<std::string> words = command, environment = environment_of_child();
  Start start{pointers(words), pointers(environment), output.c_str(), seconds};
  const pid_t pid = start_process(start);
  if (start.error != 0) return {Finished::Kind::could_not_start, 0, std::strerror(start.error)};

  if (!wait_until_done(pid, seconds)) {
    kill(-pid, SIGKILL);
    status_of(pid);
    return {Finished::Kind::timed_out, 0, fmt::format("it ran longer than {} s", seconds)};
  }
  int status = status_of(pid);
  if (WIFSIGNALED(status))
    return {Finished::Kind::killed, 0, fmt::format("signal {}", WTERMSIG(status))};
  return {Finished::Kind::exited, WEXITSTATUS(status), ""};
}

}  // namespace tw
