// Random programs on a device against the interpreter. Exit code 0: all agree.

#include <CLI/CLI.hpp>
#include <chrono>
#include <fmt/format.h>

#include "tw/check/staged.h"
#include "tw/emu/device.h"
#include "tw/ir/print.h"
#include "tw/jit/kernel.h"

#include "tests/fuzz/farm.h"
#include "tests/fuzz/shrink.h"

namespace tw::test {

namespace {

struct Options {
  uint64_t count = 500, seed = 0;
  int jobs = 2, shown = 3;
  bool print_text = false;
  std::string device = "cpu:0";
};

Kernel kernel_of(const Options& o, const RandomProgram& r) {
  Program p = r.program;
  if (o.device != "cpu:0") drop_messages(p, true);  // GPUs do not print
  return compile(std::move(p), Device::open(o.device));
}

Verdict examine(const Options& o, const RandomProgram& r) {
  return judge(r, [&](const RandomProgram& program, const Arguments& a) {
    check::run_on_host_tensors(kernel_of(o, program), Device::open(o.device), a.inputs, a.outputs,
                               program.dims);
  });
}

std::string describe(const RandomProgram& r) {
  std::string s = print(r.program);
  for (const auto& [name, value] : r.dims) s += fmt::format("// {} = {}\n", name, value);
  const Arguments a = arguments(r);
  for (size_t i = 0; i < a.tensors.size(); ++i)
    s += fmt::format("// {}: {}, fill {}, special 1 in {}, seed {:#x}\n", r.program.params[i].name,
                     to_string(a.tensors[i].view()), static_cast<int>(r.tensors[i].fill),
                     r.tensors[i].special_one_in, r.tensors[i].seed);
  return s;
}

void report(const Options& o, uint64_t seed, const Verdict& v) {
  fmt::print("seed {}: {}\n", seed, v.fault);
  // The same kind of fault: what begins with the same words.
  const std::string kind = v.fault.substr(0, 4);
  const auto fails = [&](const RandomProgram& r) {
    return in_child([&] { return examine(o, r); }).fault.starts_with(kind);
  };
  const RandomProgram small = shrink(random_program(seed), fails, 150);
  const Verdict again = in_child([&] { return examine(o, small); });
  fmt::print("reduced: {}\n{}\n", again.fault, describe(small));
  if (o.print_text) {
    const Arguments a = arguments(small);
    fmt::print("{}\n", kernel_of(o, small).source(a.inputs, a.outputs, small.dims));
  }
  std::fflush(stdout);
}

int run(const Options& o) {
  const auto start = std::chrono::steady_clock::now();
  Verdict sum;
  std::vector<std::pair<uint64_t, Verdict>> faults;
  uint64_t programs = 0;
  farm(
      o.seed, o.count, o.jobs, [&](uint64_t seed) { return examine(o, random_program(seed)); },
      [&](uint64_t seed, const Verdict& v) {
        ++programs;
        sum.elements += v.elements;
        sum.exact += v.exact;
        sum.undecided += v.undecided;
        if (!v.agrees()) faults.emplace_back(seed, v);
        return true;
      });
  for (size_t i = 0; i < faults.size(); ++i) {
    if (i < static_cast<size_t>(o.shown))
      report(o, faults[i].first, faults[i].second);
    else
      fmt::print("seed {}: {}\n", faults[i].first, faults[i].second.fault.substr(0, 150));
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double n = static_cast<double>(std::max<int64_t>(sum.elements, 1));
  const double undecided = 100 * static_cast<double>(sum.undecided) / n;
  fmt::print(
      "{} programs, {} disagree; {} elements, {:.2f} % exact, {:.3f} % undecided; {:.0f} s\n",
      programs, faults.size(), sum.elements, 100 * static_cast<double>(sum.exact) / n, undecided,
      seconds);
  // Of few programs one may leave much undecided.
  constexpr uint64_t kMany = 100;
  return faults.empty() && (undecided < 1 || programs < kMany) ? 0 : 1;
}

}  // namespace

}  // namespace tw::test

int main(int argc, char** argv) {
  tw::test::Options o;
  CLI::App app("random programs: interpreter against a device");
  app.add_option("--count", o.count, "programs");
  app.add_option("--seed", o.seed, "of the first; the others follow");
  app.add_option("--jobs", o.jobs, "processes");
  app.add_option("--shown", o.shown, "failures that are reduced and printed");
  app.add_option("--device", o.device, "cpu:0, cuda:N or emu:0");
  app.add_flag("--text", o.print_text, "print the emitted text of reduced failures");
  CLI11_PARSE(app, argc, argv);
  tw::register_emulator();
  return tw::test::run(o);
}
