#include "tw/cli/apart.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <poll.h>
#include <sstream>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tw/base/error.h"

namespace tw::cli {
namespace {

constexpr char kEndOfSeed = '.';  ///< then the next seed has its time
constexpr char kEndOfAll = '!';   ///< the result follows

void write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) _exit(1);
    at += n > 0 ? static_cast<size_t>(n) : 0;
  }
}

/// An error of another kind than a device's, which the parent throws: its exit code goes first.
std::string told(const Error& e) { return fmt::format("{} {}", e.exit_code(), e.what()); }

[[noreturn]] void judge_in_child(const std::function<Judged(uint64_t seed)>& judge, int seeds,
                                 const std::string& label, int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  Judged all;
  std::string error;
  try {
    for (int seed = 1; seed <= seeds && all.faults.empty(); ++seed) {
      const Judged one = judge(static_cast<uint64_t>(seed));
      all.faults += one.faults;
      all.worst = std::max(all.worst, one.worst);
      all.elements += one.elements;
      all.ran |= one.ran;
      write_all(fd, std::string(1, kEndOfSeed));
    }
  } catch (const DeviceError& e) {
    all.faults += fmt::format("{}: {}", label, e.what());
  } catch (const Error& e) {
    error = told(e);
  } catch (const std::exception& e) {
    error = told(InternalError(e.what()));
  }
  if (error.empty())
    error = fmt::format("0 {} {} {} {}", all.worst, all.elements, all.ran, all.faults);
  write_all(fd, kEndOfAll + error);
  _exit(0);
}

/// All that the child says; nothing where it was silent for too long, and is no more.
std::optional<std::string> heard(pid_t pid, int fd, int seconds) {
  std::string text;
  char buffer[4096];
  for (;;) {
    pollfd wait{fd, POLLIN, 0};
    const int ready = poll(&wait, 1, seconds * 1000);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      kill(pid, SIGKILL);
      return std::nullopt;
    }
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

[[noreturn]] void throw_again(int code, const std::string& text) {
  if (code == UserError("").exit_code()) throw UserError(text);
  if (code == EnvError("").exit_code()) throw EnvError(text);
  throw InternalError(text);
}

Judged result_of(const std::string& text) {
  std::istringstream in(text);
  int code = 0;
  Judged j;
  in >> code;
  if (code != 0) throw_again(code, text.substr(text.find(' ') + 1));
  in >> j.worst >> j.elements >> j.ran;
  in.get();
  j.faults.assign(std::istreambuf_iterator<char>(in), {});
  return j;
}

}  // namespace

Judged judged_apart(const std::function<Judged(uint64_t seed)>& judge, int seeds, int seconds,
                    const std::string& label) {
  int ends[2];
  if (pipe(ends) != 0) throw EnvError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const pid_t pid = fork();
  if (pid < 0) throw EnvError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid == 0) judge_in_child(judge, seeds, label, ends[1]);
  close(ends[1]);
  const std::optional<std::string> text = heard(pid, ends[0], seconds);
  close(ends[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!text)
    return {.faults = fmt::format("{}: no answer within {} s: a loop that touches no memory never "
                                  "ends; --timeout gives more",
                                  label, seconds)};
  const size_t end = text->find(kEndOfAll);
  if (end == std::string::npos)
    return {.faults = fmt::format("{}: its process ended by signal {}: {}", label, WTERMSIG(status),
                                  strsignal(WTERMSIG(status)))};
  return result_of(text->substr(end + 1));
}

}  // namespace tw::cli
