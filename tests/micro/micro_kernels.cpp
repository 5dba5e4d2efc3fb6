// Micro kernels of the CUDA prelude on a device: micro_kernels --list, or --group NAME --device D.
// Exit code 0: all is as it must be; 1: what differs is told.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/micro/micro.h"

namespace tw::test {

namespace {

struct Options {
  std::string group, device = "emu:0";
  bool list = false, text = false;
  unsigned seconds = 30;  ///< for a group, or what is left of it
};

/// What processes tell of kernels that are done.
struct Told {
  size_t number;
  std::string fault;
};

void tell(int pipe, size_t number, const std::string& fault) {
  constexpr size_t kMost = 3000;  // of one write that nothing comes between
  const std::string line = fmt::format("{} {}{}", number, fault.substr(0, kMost), '\0');
  if (write(pipe, line.data(), line.size()) < 0) _exit(1);
}

/// Runs kernels from `first` on in this process, which then ends.
[[noreturn]] void run_and_leave(const Options& o, size_t first, int pipe) {
  alarm(o.seconds);
  const std::span<const MicroKernel> kernels(micro_group(o.group).begin() + long(first),
                                             micro_group(o.group).end());
  size_t next = 0;
  try {
    if (o.device == "emu:0") {
      for (; next < kernels.size(); ++next)
        tell(pipe, first + next, run_in_emulator(kernels[next], 0));
    } else {
      run_on_gpu(kernels, o.device, [&](size_t i, const std::string& fault) {
        tell(pipe, first + i, fault);
        next = i + 1;
      });
    }
  } catch (const std::exception& e) {
    tell(pipe, first + next, fmt::format("{}: {}\n", kernels[next].name, e.what()));
  }
  _exit(0);
}

std::string ending(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "is not done in time";
  return WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "ended early";
}

/// One process for the kernels from `first` on; those that it told of.
std::vector<Told> run_from(const Options& o, size_t first) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) run_and_leave(o, first, ends[1]);
  close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) != child) {
  }
  std::vector<Told> told;
  for (size_t at = 0, end; (end = said.find('\0', at)) != std::string::npos; at = end + 1) {
    const std::string line = said.substr(at, end - at);
    const size_t space = line.find(' ');
    told.push_back({std::stoul(line.substr(0, space)), line.substr(space + 1)});
  }
  const size_t next = first + told.size();
  const auto& kernels = micro_group(o.group);
  if (status != 0 && next < kernels.size())
    told.push_back({next, fmt::format("{}: {}\n", kernels[next].name, ending(status))});
  return told;
}

/// A kernel after which a GPU has to be given up is the last one of its process.
int run(const Options& o) {
  const auto& kernels = micro_group(o.group);
  std::string faults;
  size_t next = 0, wrong = 0, parts = 0;
  while (next < kernels.size()) {
    const std::vector<Told> told = run_from(o, next);
    if (told.empty()) throw std::runtime_error("a process told nothing");
    for (const Told& t : told) {
      faults += t.fault;
      wrong += !t.fault.empty();
    }
    next += told.size();
  }
  for (const MicroKernel& k : kernels) {
    for (const MicroResult& r : k.results) parts += std::max<size_t>(1, r.parts.size());
  }
  if (wrong == 0)
    fmt::print("{} micro kernels, {} results, all as they must be\n", kernels.size(), parts);
  else
    fmt::print("{} of {} micro kernels differ\n{}", wrong, kernels.size(), faults);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

}  // namespace tw::test

int main(int argc, char** argv) {
  tw::test::Options o;
  CLI::App app("micro kernels of the CUDA prelude");
  app.add_flag("--list", o.list, "names of groups, and leave");
  app.add_flag("--text", o.text, "print the group's CUDA text, and leave");
  app.add_option("--group", o.group, "which");
  app.add_option("--device", o.device, "cuda:N or emu:0");
  app.add_option("--seconds", o.seconds, "that a process may take");
  CLI11_PARSE(app, argc, argv);
  if (o.text)
    fmt::print("{}", tw::test::text_of(tw::test::micro_group(o.group), tw::cpu::Thread::cuda));
  if (o.text) return 0;
  if (!o.list) return tw::test::run(o);
  for (const std::string& g : tw::test::micro_groups()) fmt::print("{}\n", g);
  return 0;
}
