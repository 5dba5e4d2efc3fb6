// Judges callables on a GPU that cheat in one way each, and honest ones. One that is judged
// otherwise than docs/judge.md says is named, and the program leaves with 1.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/check/judge.h"
#include "tw/jit/kernel.h"
#include "tw/jit/temporary_folder.h"
#include "tw/tensor/file.h"

#include "tests/check/product.h"
#include "tests/zoo/species.h"

namespace tw::zoo {
namespace {

/// Whether a fault has the words of a verdict.
bool as_expected(const Species& s, const check::Ruling& r) {
  if (std::string_view(s.verdict) == "accepted") return r.fault.empty() && r.timed > 0;
  return check::says(r.fault, s.verdict);
}

bool is_judged_right(const Species& s, const std::string& device, const std::string& cubin) {
  const check::Ruling r = check::judge_product(
      {s.name, "zoo", fmt::format("{}\n{}\n{}", s.name, device, cubin)}, check::quick_settings());
  const bool right = as_expected(s, r);
  fmt::print("{}: {}{}\n", s.name, r.fault.empty() ? "accepted" : "rejected, " + r.fault,
             right ? "" : fmt::format("; wanted '{}'", s.verdict));
  std::fflush(stdout);
  return right;
}

int judge_all(const std::string& one, const std::string& device) {
  const TemporaryFolder folder;
  const std::string cubin = folder.path() + "/zoo.cubin";
  write_file(cubin, {compile_cuda(Device::open(device).gpu().arch, text()).cubin});
  int judged = 0, wrong = 0;
  for (const Species& s : species()) {
    if (!one.empty() && one != s.name) continue;
    ++judged;
    wrong += !is_judged_right(s, device, cubin);
  }
  if (judged == 0)
    throw UserError(fmt::format("no callable is called '{}'", one), "--list has the names");
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tw::zoo

int main(int argc, char** argv) {
  using namespace tw;
  if (const auto code = measure::serve_worker(argc, argv, zoo::make_contestant)) return *code;
  CLI::App app{"Judges callables on a GPU: cheats and honest ones."};
  bool list = false;
  std::string one, device = "cuda:0";
  app.add_flag("--list", list, "names of all");
  app.add_option("name", one, "only this one");
  app.add_option("--device", device)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (list) {
    for (const zoo::Species& s : zoo::species()) fmt::print("{}\n", s.name);
    return 0;
  }
  try {
    return zoo::judge_all(one, device);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 3;
  }
}
