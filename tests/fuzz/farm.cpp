#include "tests/fuzz/farm.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <map>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace tw::test {

namespace {

constexpr unsigned kSeconds = 60;

struct Child {
  uint64_t seed = 0;
  std::FILE* answer = nullptr;  ///< a file that the child fills: a pipe could fill up and block
};

std::string to_text(const Verdict& v) {
  return fmt::format("{} {} {} {}\n{}", v.elements, v.exact, v.undecided,
                     static_cast<int>(v.applied), v.fault);
}

Verdict from_text(const std::string& text) {
  Verdict v;
  int applied = 0;
  const size_t line = text.find('\n');
  if (line == std::string::npos || std::sscanf(text.c_str(), "%ld %ld %ld %d", &v.elements,
                                               &v.exact, &v.undecided, &applied) < 4)
    throw std::runtime_error("a child of the farm gave no answer");
  v.applied = applied != 0;
  v.fault = text.substr(line + 1);
  return v;
}

pid_t start(Child& c, const std::function<Verdict()>& work) {
  c.answer = std::tmpfile();
  if (!c.answer) throw std::runtime_error("no temporary file");
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("no process");
  if (pid > 0) return pid;
  alarm(kSeconds);
  Verdict v;
  try {
    v = work();
  } catch (const std::exception& e) {
    v.fault = e.what();
  }
  const std::string text = to_text(v);
  std::fwrite(text.data(), 1, text.size(), c.answer);
  std::fflush(c.answer);
  _exit(0);
}

Verdict finish(const Child& c, int status) {
  Verdict v;
  if (WIFSIGNALED(status)) {
    v.fault = WTERMSIG(status) == SIGALRM
                  ? fmt::format("is not done after {} s", kSeconds)
                  : fmt::format("killed by signal {} ({})", WTERMSIG(status),
                                strsignal(WTERMSIG(status)));
  } else {
    std::string text;
    std::rewind(c.answer);
    char buffer[4096];
    while (const size_t n = std::fread(buffer, 1, sizeof buffer, c.answer)) text.append(buffer, n);
    v = from_text(text);
  }
  std::fclose(c.answer);
  return v;
}

}  // namespace

void farm(uint64_t first, uint64_t count, int jobs, const Work& work,
          const std::function<bool(uint64_t seed, const Verdict&)>& done) {
  std::map<pid_t, Child> running;
  uint64_t next = first;
  bool go_on = true;
  while (!running.empty() || (go_on && next < first + count)) {
    if (go_on && next < first + count && static_cast<int>(running.size()) < jobs) {
      Child c{next, nullptr};
      const pid_t pid = start(c, [&] { return work(next); });
      running[pid] = c;
      ++next;
      continue;
    }
    int status = 0;
    const auto child = running.find(waitpid(-1, &status, 0));
    if (child == running.end()) continue;
    const Child c = child->second;
    running.erase(child);
    go_on = done(c.seed, finish(c, status)) && go_on;
  }
}

Verdict in_child(const std::function<Verdict()>& work) {
  Child c;
  const pid_t pid = start(c, work);
  int status = 0;
  while (waitpid(pid, &status, 0) != pid) {
  }
  return finish(c, status);
}

}  // namespace tw::test
