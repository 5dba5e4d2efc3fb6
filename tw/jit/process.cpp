#include "tw/jit/process.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
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

Finished run_process(const std::vector<std::string>& command, const std::string& output,
                     int seconds) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  // Threads of the pool block all signals, which the child must not inherit. A group of its own
  // lets a compiler that hangs be ended with the processes that it started.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  int error = posix_spawn(&pid, words[0], &files, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return {Finished::Kind::could_not_start, 0, std::strerror(error)};

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
