#include "tests/support/burners.h"

#include <csignal>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tw::test {

static pid_t burner() {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (true) asm volatile("");
}

Burners::Burners(int count) {
  for (int i = 0; i < count; ++i) pids_.push_back(burner());
}

Burners::~Burners() {
  for (const pid_t pid : pids_)
    if (pid > 0) kill(pid, SIGKILL);
  for (const pid_t pid : pids_)
    if (pid > 0) waitpid(pid, nullptr, 0);
}

}  // namespace tw::test
