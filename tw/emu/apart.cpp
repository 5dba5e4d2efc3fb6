#include "tw/emu/apart.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tw/base/error.h"

namespace tw {
namespace {

using Work = std::function<void(const std::function<void(std::string_view)>& tell)>;

constexpr int kFailed = 1;  ///< status of work that threw, or whose parent does not listen

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno != EINTR) _exit(kFailed);
    text.remove_prefix(n > 0 ? static_cast<size_t>(n) : 0);
  }
}

[[noreturn]] void work_in_child(const Work& work, const ApartLimits& limits, int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (limits.cpu > 0) {
    const auto seconds = static_cast<rlim_t>(limits.cpu);
    const rlimit cpu{seconds, seconds + 1};
    setrlimit(RLIMIT_CPU, &cpu);
  }
  try {
    work([fd](std::string_view text) { write_all(fd, text); });
  } catch (...) {
    _exit(kFailed);
  }
  _exit(0);
}

/// Hears the child until it ends, or is silent for too long: then it is no more.
void hear(pid_t pid, int fd, int silence, Apart& a) {
  char buffer[4096];
  for (;;) {
    pollfd wait{fd, POLLIN, 0};
    const int ready = poll(&wait, 1, silence > 0 ? silence * 1000 : -1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      kill(pid, SIGKILL);
      a.silent = true;
      return;
    }
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    a.told.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace

Apart run_apart(const Work& work, const ApartLimits& limits) {
  int ends[2];
  if (pipe(ends) != 0) throw EnvError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);  // else the child says it again
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    throw EnvError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  if (pid == 0) {
    close(ends[0]);
    work_in_child(work, limits, ends[1]);
  }
  close(ends[1]);
  Apart a;
  hear(pid, ends[0], limits.silence, a);
  close(ends[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  a.ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  a.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  a.late = !a.silent && limits.cpu > 0 && (a.signal == SIGXCPU || a.signal == SIGKILL);
  return a;
}

}  // namespace tw
