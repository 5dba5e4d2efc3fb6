// Judges callables on a GPU that cheat in one way each, and honest ones. One that is judged
// otherwise than docs/judge.md says is named, and the program leaves with 1.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

#include "tw/check/judge.h"
#include "tw/jit/kernel.h"

#include "tests/check/product.h"
#include "tests/zoo/species.h"

namespace tw::zoo {
namespace {

/// The compiled text, in a file that goes with it.
class Compiled {
 public:
  explicit Compiled(const Device& d) {
    const int file = mkstemp(path_.data());
    close(file);
    std::ofstream(path_, std::ios::binary) << compile_cuda(d.gpu().arch, text()).cubin;
  }
  ~Compiled() { unlink(path_.c_str()); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/gpu-zoo-XXXXXX";
};

check::Ruling judge(const Species& s, const std::string& device, const std::string& cubin) {
  check::Judge::Settings settings;
  settings.timeout_s = 5;
  settings.timing.blocks = 4;
  settings.timing.slice_s = 0.01;
  settings.timing.repeats = 6;
  check::Judge judge({s.name, "zoo", fmt::format("{}\n{}\n{}", s.name, device, cubin)}, settings);
  using check::product_case;
  for (const check::Case& c : {product_case(7, 9, 11), product_case(16, 8, 24),
                               product_case(0, 5, 3), product_case(5, 3, 0)})
    judge.check(c);
  judge.endure(product_case(40, 56, 48));
  judge.time(product_case(64, 64, 64));
  return judge.ruling();
}

/// Whether a fault has the words of a verdict.
bool as_expected(const Species& s, const check::Ruling& r) {
  if (std::string_view(s.verdict) == "accepted") return r.fault.empty() && r.timed > 0;
  return check::says(r.fault, s.verdict);
}

bool is_judged_right(const Species& s, const std::string& device, const std::string& cubin) {
  const check::Ruling r = judge(s, device, cubin);
  const bool right = as_expected(s, r);
  fmt::print("{}: {}{}\n", s.name, r.fault.empty() ? "accepted" : "rejected, " + r.fault,
             right ? "" : fmt::format("; wanted '{}'", s.verdict));
  std::fflush(stdout);
  return right;
}

int judge_all(const std::string& one, const std::string& device) {
  const Compiled compiled(Device::open(device));
  int wrong = 0;
  for (const Species& s : species())
    if (one.empty() || one == s.name) wrong += !is_judged_right(s, device, compiled.path());
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
