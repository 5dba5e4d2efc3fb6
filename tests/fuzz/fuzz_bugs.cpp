// Plants known compiler bugs one at a time and counts how many the random programs of the ordinary
// run notice. Exit code 0: all but a few.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "tw/base/error.h"

#include "tests/fuzz/bugs.h"
#include "tests/fuzz/farm.h"

namespace tw::test {

namespace {

struct Options {
  uint64_t count = 500;
  int jobs = 2, missed = 2;
  std::string only, out;
};

const std::string kBadPlant = "the planted bug does not compile: ";

struct Result {
  uint64_t applied = 0;  ///< programs that the bug changed until it was noticed
  std::optional<uint64_t> seed;
  std::string fault;
};

std::string first_line(std::string s) {
  s = s.substr(0, s.find('\n'));
  return s.size() > 90 ? s.substr(0, 90) + ".." : s;
}

Verdict examine(const Bug& bug, uint64_t seed) {
  const RandomProgram r = random_program(seed);
  NativeKernel kernel(r, bug.hooks);
  if (!kernel.changed()) {
    Verdict v;
    v.applied = false;
    return v;
  }
  try {
    kernel.compile();
  } catch (const Error& e) {
    // What the C++ compiler refuses is no bug that a test must find: the plant is wrong.
    throw std::runtime_error(kBadPlant + first_line(e.what()));
  }
  return judge(r,
               [&](const RandomProgram& program, const Arguments& a) { kernel.run(program, a); });
}

Result hunt(const Bug& bug, const Options& o) {
  Result r;
  farm(
      0, o.count, o.jobs, [&](uint64_t seed) { return examine(bug, seed); },
      [&](uint64_t seed, const Verdict& v) {
        r.applied += v.applied;
        if (v.agrees() || r.seed) return !r.seed;
        r.seed = seed;
        r.fault = v.fault;
        return false;
      });
  return r;
}

int run(const Options& o) {
  std::vector<Bug> bugs = program_bugs();
  for (Bug& b : text_bugs()) bugs.push_back(std::move(b));
  int caught = 0, planted = 0;
  std::string table =
      "| bug | programs it changed until noticed | seed | noticed as |\n"
      "| --- | --- | --- | --- |\n";
  for (const Bug& bug : bugs) {
    if (!o.only.empty() && std::string(bug.name).find(o.only) == std::string::npos) continue;
    const Result r = hunt(bug, o);
    ++planted;
    caught += r.seed.has_value();
    table += fmt::format("| {} | {} | {} | {} |\n", bug.name, r.applied,
                         r.seed ? std::to_string(*r.seed) : "-",
                         r.seed ? first_line(r.fault) : "not noticed");
    fmt::print("{}: {} after {} programs: {}\n", bug.name, r.seed ? "noticed" : "NOT NOTICED",
               r.applied, first_line(r.fault));
    std::fflush(stdout);
  }
  const std::string summary =
      fmt::format("{} of {} bugs noticed by {} programs", caught, planted, o.count);
  fmt::print("\n{}\n{}\n", table, summary);
  if (!o.out.empty())
    std::ofstream(o.out) << "# Planted compiler bugs\n\n" << summary << ".\n\n" << table;
  return planted - caught > o.missed ? 1 : 0;
}

}  // namespace

}  // namespace tw::test

int main(int argc, char** argv) {
  tw::test::Options o;
  CLI::App app("planted compiler bugs against random programs");
  app.add_option("--count", o.count, "programs of the set");
  app.add_option("--jobs", o.jobs, "processes");
  app.add_option("--missed", o.missed, "most bugs that may go unnoticed");
  app.add_option("--only", o.only, "bugs with this in their name");
  app.add_option("--out", o.out, "also write the table to this file");
  CLI11_PARSE(app, argc, argv);
  try {
    return tw::test::run(o);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
