#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/check/contestant.h"
#include "tw/cli/bench_against.h"
#include "tw/cli/bench_job.h"
#include "tw/cli/output.h"
#include "tw/measure/change.h"
#include "tw/runtime/device.h"

namespace tw::cli {

namespace {

/// In single quotes for a shell.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

struct Said {
  int status = 0;  ///< as of waitpid()
  std::string out;
  bool left_with(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
};

/// Runs the words of a shell, which get no input.
Said ask(const std::string& words) {
  FILE* pipe = popen((words + " </dev/null").c_str(), "r");
  if (pipe == nullptr) throw EnvError("cannot start " + words);
  Said said;
  char part[4096];
  for (size_t n; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) said.out.append(part, n);
  said.status = pclose(pipe);
  return said;
}

[[noreturn]] void refuse_before(const std::string& path, const std::string& why) {
  throw UserError(fmt::format("--before: got '{}', which {}", path, why),
                  "name the command of an earlier build, as ../old/build/release/tilewright");
}

/// The path of the earlier build's command for any folder; UserError where it is no tilewright.
std::string earlier_command(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (!fs::exists(there)) refuse_before(path, "is no tilewright: there is no such file");
  if (!fs::is_regular_file(there)) refuse_before(path, "is no tilewright: it is no file");
  if (access(path.c_str(), X_OK) != 0)
    refuse_before(path, "is no tilewright: it is no program that may be run");
  const std::string command = fs::absolute(path);
  const Said version = ask(quoted(command) + " --version 2>/dev/null");
  if (!version.left_with(0) || !version.out.starts_with("tilewright "))
    refuse_before(path, "is no tilewright: --version does not say so");
  return command;
}

/// What the earlier build makes of the case; nothing where it says that it has no such case.
std::optional<std::string> earlier_program(const std::string& command, const BenchCase& c) {
  constexpr int kUserError = 2;
  std::string words = fmt::format("{} opt {} --dtype {} --threads {}", quoted(command),
                                  c.kernel->name, name(c.problem.dtype), c.threads);
  for (const auto& [axis, extent] : c.problem.shape)
    words += fmt::format(" --shape {}={}", axis, extent);
  for (const auto& [option, value] : c.problem.options)
    words += fmt::format(" --option {}={}", option, quoted(value));
  const Said program = ask(words + " 2>/dev/null");
  if (program.left_with(kUserError)) return std::nullopt;
  if (!program.left_with(0) || program.out.empty())
    refuse_before(command, fmt::format("fails at '{}'", words.substr(quoted(command).size() + 1)));
  return program.out;
}

const char* word(measure::Verdict v) {
  switch (v) {
    case measure::Verdict::slower:
      return "SLOWER";
    case measure::Verdict::equal:
      return "equal";
    case measure::Verdict::faster:
      return "faster";
  }
  return "?";
}

nlohmann::json to_json(const BenchCase& c, const measure::Change& change) {
  return {{"kernel", c.kernel->name},         {"shape", shape_text(c)},
          {"dtype", name(c.problem.dtype)},   {"threads", c.threads},
          {"before_us", change.before_us},    {"after_us", change.after_us},
          {"ratio", change.ratio.median},     {"ci95", {change.ratio.low, change.ratio.high}},
          {"rounds", change.rounds.size()},   {"disturbed", change.disturbed},
          {"verdict", word(change.verdict())}};
}

measure::Change change_of(const BenchCase& c, const std::string& earlier,
                          const std::string& command, const Arguments& a) {
  const CpuMachine machine = Device::open("cpu:0").cpu();
  const measure::ContestantSpec after =
      check::kernel_contestant("tilewright", program_of(c, machine),
                               a.mapping.empty() ? Mapping{} : parse_mapping(a.mapping));
  measure::ContestantSpec before = after;
  before.name = "earlier";
  before.source = after.source.substr(0, after.source.find('\n') + 1) + earlier;
  before.worker = command;
  measure::ChangeSettings settings;
  settings.round.cold_bytes = c.inputs == Residence::memory ? kColdBytes : 0;
  return measure::change_between(job_of(c), before, after, settings);
}

}  // namespace

int bench_before(const BenchPlan& plan, const Arguments& a) {
  const std::string command = earlier_command(a.before);
  std::vector<nlohmann::json> rows;
  int slower = 0;
  for (const BenchCase& c : plan.cases) {
    const std::string what =
        fmt::format("{} {} {}, {} thread{}", c.kernel->name, shape_text(c), name(c.problem.dtype),
                    c.threads, c.threads == 1 ? "" : "s");
    const std::optional<std::string> earlier = earlier_program(command, c);
    if (!earlier) {
      say(fmt::format("{:<8} {}\n", "new", what), a);
      continue;
    }
    const measure::Change change = change_of(c, *earlier, command, a);
    slower += change.verdict() == measure::Verdict::slower;
    say(fmt::format("{:<8} {}: {:.4f} [{:.4f},{:.4f}] of its speed, {} rounds\n",
                    word(change.verdict()), what, change.ratio.median, change.ratio.low,
                    change.ratio.high, change.rounds.size()),
        a);
    rows.push_back(to_json(c, change));
  }
  if (a.json) write_json(*a.json, rows);
  return slower > 0 ? 1 : 0;
}

}  // namespace tw::cli
