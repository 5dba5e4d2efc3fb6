#include "tw/check/judge.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/check/contestant.h"
#include "tw/cli/bench_case.h"
#include "tw/cli/bench_job.h"
#include "tw/cli/call.h"
#include "tw/cli/output.h"
#include "tw/cli/verbs.h"
#include "tw/jit/compiler.h"
#include "tw/runtime/device.h"

namespace tw::cli {

namespace {

using check::Case;
using kernels::KernelEntry;
using kernels::Problem;

/// A shared object of ejected source, in a folder that goes with it.
class BuiltSource {
 public:
  explicit BuiltSource(const std::filesystem::path& source) {
    std::string folder = std::filesystem::temp_directory_path() / "tilewright-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr)
      throw EnvError(fmt::format("cannot make a folder like {}", folder));
    folder_ = folder;
    const std::filesystem::path wrapper = folder_ / "callable.cpp";
    std::ofstream(wrapper) << fmt::format(
        "#include \"{}\"\n"
        "extern \"C\" __attribute__((visibility(\"default\"))) void* const tw_ejected;\n"
        "void* const tw_ejected = reinterpret_cast<void*>(&{});\n",
        std::filesystem::absolute(source).string(), function_in(source));
    const std::string command = fmt::format("'{}' -std=c++17 -O2 -shared -fPIC -o '{}' '{}'",
                                            find_compiler().path, library(), wrapper.string());
    if (std::system(command.c_str()) != 0)
      throw UserError(fmt::format("{} does not compile", source.string()));
  }
  ~BuiltSource() {
    std::error_code unused;
    std::filesystem::remove_all(folder_, unused);
  }
  BuiltSource(const BuiltSource&) = delete;
  BuiltSource& operator=(const BuiltSource&) = delete;

  std::string library() const { return folder_ / "callable.so"; }

 private:
  /// What the header beside the source declares.
  static std::string function_in(std::filesystem::path source) {
    const std::filesystem::path header = source.replace_extension(".h");
    std::ifstream file(header);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::smatch found;
    if (!std::regex_search(text, found, std::regex("\nint (\\w+)\\(const ")))
      throw UserError(fmt::format("{} declares no function as 'eject' writes it", header.string()),
                      "eject writes FILE.h beside FILE.cpp");
    return found[1];
  }

  std::filesystem::path folder_;
};

Case case_of(const KernelEntry& k, const Problem& p, const Arguments& a) {
  Case c{to_string(p),
         {k.name, p.options, std::max(a.threads, 1)},
         k.arguments(p),
         [&k, p](std::span<const TensorView> in) { return k.reference(p, in); }};
  if (a.callable == "ours") {
    const Mapping mapping = a.mapping.empty() ? Mapping{} : parse_mapping(a.mapping);
    const Program program = k.trace(p, Device::open(a.device).target(c.task.threads));
    c.source = check::kernel_contestant("", program, mapping, a.device).source;
  }
  return c;
}

/// Least time of the problem at rates that no machine of this kind reaches.
double least_us(const KernelEntry& k, const Problem& p, int threads, const Device& device) {
  constexpr double kBeyond = 3;
  const BenchCase bench{&k, p, threads};
  const Program program = k.trace(p, device.target(threads));
  const Work work = least_work(program, dims_of(program, bench));
  const auto bytes = static_cast<double>(work.bytes());
  if (device.kind() == DeviceKind::cuda)
    return 1e-6 * bytes / stated_peaks(device.gpu().arch).cache_copy / kBeyond;
  const measure::Ceilings c = measure::measure_ceilings(threads, "", 1);
  return std::max(work.flops / c.f32_flops, bytes / c.cache.copy) / kBeyond;
}

/// Of the problems, those that source of one form solves: that of the options it was made for.
std::vector<Problem> solved_by(const std::filesystem::path& source, std::vector<Problem> problems) {
  std::ifstream file(std::filesystem::path(source).replace_extension(".h"));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::erase_if(problems, [&](const Problem& p) {
    const std::string form = to_string(p);
    return text.find(form.substr(form.find(' ')) + ", ") == std::string::npos;
  });
  if (problems.empty())
    throw UserError(fmt::format("{} was made for none of these problems", source.string()),
                    "its header says for which, name that by --dtype and --option");
  return problems;
}

constexpr int64_t kTelling = 64 << 10, kLeastTelling = 1 << 10;  // bytes of tensors

/// The usual problem with all extents halved until it is of middling size; none where they must
/// fit each other otherwise.
std::optional<Problem> middling(const KernelEntry& k, Problem like) {
  like.shape.clear();
  try {
    for (Problem p = complete(k, like);;) {
      if (tensor_bytes(k, p) <= 4 * kTelling) return p;
      for (auto& [axis, extent] : p.shape) extent = std::max<int64_t>(extent / 2, 1);
    }
  } catch (const UserError&) {
    return {};
  }
}

/// The problems that tell most when they are called many times, best first: of middling size, so
/// that they take no time. Those that are named by the user, however small they are.
std::vector<Problem> telling(const KernelEntry& k, std::vector<Problem> taken, bool named) {
  const auto distance = [&](const Problem& p) {
    return std::abs(
        std::log2(static_cast<double>(std::max<int64_t>(tensor_bytes(k, p), 1)) / kTelling));
  };
  if (named || taken.empty()) return taken;
  const Problem like = taken.front();
  std::erase_if(taken, [&](const Problem& p) { return tensor_bytes(k, p) < kLeastTelling; });
  std::ranges::stable_sort(taken, {}, distance);
  if (const std::optional<Problem> p = middling(k, like)) taken.push_back(*p);
  if (taken.empty()) taken.push_back(like);
  return taken;
}

nlohmann::json to_json(const check::Ruling& r, const check::Audit& audit) {
  nlohmann::json errors = nlohmann::json::array();
  for (const check::OutputErrors& e : r.errors)
    errors.push_back(
        {{"e2", e.e2}, {"e9999", e.e9999}, {"most", e.most}, {"of_allowed", e.of_allowed}});
  return {{"problems", r.cases},
          {"refused", r.refused},
          {"refusals", r.refusals},
          {"calls", r.calls},
          {"elements", r.elements},
          {"time_us", r.time_us},
          {"errors", errors},
          {"max_err_over_bound", r.worst},
          {"timed_outputs", r.timed},
          {"mutants", audit.mutants},
          {"mutants_passed", audit.passed},
          {"fault", r.fault},
          {"seed", r.seed}};
}

std::string summary(const check::Ruling& r, const check::Audit& audit, const Case& timed) {
  std::string text = fmt::format(
      "{} problem{}, {} refused, {} calls, {} elements, worst error {:.3f} of its bound", r.cases,
      r.cases == 1 ? "" : "s", r.refused, r.calls, r.elements, r.worst);
  if (r.timed > 0)
    text +=
        fmt::format("; {:.4g} us a call of {} on {} thread{}, {} timed outputs", r.time_us,
                    timed.label, timed.task.threads, timed.task.threads == 1 ? "" : "s", r.timed);
  text += fmt::format("; {} of {} mutants of the reference told",
                      audit.mutants - static_cast<int>(audit.passed.size()), audit.mutants);
  return text;
}

/// Those of the problems that the callable computes.
std::vector<Problem> taken_of(const KernelEntry& k, const std::vector<Problem>& problems,
                              check::Judge& judge, const Arguments& a) {
  std::vector<Problem> taken;
  for (size_t i = 0; i < problems.size(); ++i) {
    show_progress(fmt::format("{} {}/{}", k.name, i + 1, problems.size()));
    if (judge.check(case_of(k, problems[i], a))) taken.push_back(problems[i]);
  }
  return taken;
}

/// Many calls of the first of the candidates that is taken, which becomes `timed`, and its time.
/// Says why not.
std::string judge_calls(const KernelEntry& k, const std::vector<Problem>& candidates,
                        check::Judge& judge, Case& timed, const Arguments& a) {
  if (!judge.ruling().fault.empty()) return "";
  if (judge.ruling().refused == judge.ruling().cases) return "it refuses every problem";
  for (const Problem& p : candidates) {
    const Case c = case_of(k, p, a);
    show_progress(fmt::format("{} many calls of {}", k.name, c.label));
    if (!judge.endure(c) && judge.ruling().fault.empty()) continue;
    timed = c;
    const double least = least_us(k, p, c.task.threads, Device::open(a.device));
    if (judge.time(c, least) || !judge.ruling().fault.empty()) return "";
    return fmt::format("it refuses to be timed on {}, which it computed", c.label);
  }
  return "it refuses every problem that is large enough to be called many times and timed; name "
         "one "
         "that it computes by --shape";
}

/// Judges one kernel's callable; whether it was accepted.
bool judge_kernel(const KernelEntry& k, const Arguments& a, std::vector<nlohmann::json>& rows) {
  std::vector<Problem> problems = problems_of(k, a, k.sweep());
  if (problems.empty()) return true;  // none of this type
  std::optional<BuiltSource> built;
  measure::ContestantSpec spec{"callable", "peer", std::filesystem::absolute(a.callable)};
  if (a.callable == "ours") spec = {k.name, "kernel", ""};
  if (a.callable.ends_with(".cpp")) {
    spec.source = built.emplace(a.callable).library();
    problems = solved_by(a.callable, problems);
  }

  check::Judge::Settings settings;
  settings.threads = std::max(a.threads, 1);
  settings.timing.blocks = 6;
  check::Judge judge(spec, settings);
  const std::vector<Problem> taken = taken_of(k, problems, judge, a);
  const bool named = names_problem(a);
  Case timed = case_of(k, telling(k, problems, named).front(), a);
  const std::string unfit = judge_calls(k, telling(k, taken, named), judge, timed, a);
  show_progress("");
  const check::Audit audit = check::audit(timed);

  const check::Ruling& r = judge.ruling();
  const std::string fault = r.fault.empty() ? unfit : r.fault;
  say(fmt::format("{} {}: {}\n", k.name, a.callable, summary(r, audit, timed)), a);
  for (size_t o = 0; o < r.errors.size(); ++o)
    say(fmt::format(
            "  output {}: errors in spreads of results, of 8 inputs: root mean square {:.2g}, "
            "99.99 % {:.2g}, largest {:.2g}; root mean square {:.3f} of what it may be\n",
            o, r.errors[o].e2, r.errors[o].e9999, r.errors[o].most, r.errors[o].of_allowed),
        a);
  if (!audit.passed.empty())
    say(fmt::format("no check tells these from the reference: {}\n", fmt::join(audit.passed, ", ")),
        a);
  if (!r.refusals.empty()) say(fmt::format("  refused first: {}\n", r.refusals.front()), a);
  say(fault.empty() ? "ACCEPTED\n" : fmt::format("REJECTED: {}\n", fault), a);
  nlohmann::json& row = rows.emplace_back(to_json(r, audit));
  row.update({{"kernel", k.name},
              {"callable", a.callable},
              {"fault", fault},
              {"timed", timed.label},
              {"threads", timed.task.threads}});
  return fault.empty();
}

}  // namespace

/// Throws UserError for what is no callable; what it does when it is loaded is for the judge.
static void expect_callable(const KernelEntry& k, const Arguments& a) {
  if (a.callable == "ours" || a.callable.ends_with(".cpp")) return;
  try {
    const measure::Callee probe({"callable", "peer", std::filesystem::absolute(a.callable)},
                                {k.name, {}, 1}, {1, 4096, 30, ""});
  } catch (const EnvError& e) {
    throw UserError(fmt::format("--callable got '{}': {}", a.callable, e.message()), e.hint());
  } catch (const DeviceError&) {  // a crash or a forbidden call: a fault of the callable
  }
}

int run_judge(const Arguments& a) {
  const bool ours = a.callable == "ours";
  if (a.target.empty() && !ours)
    throw UserError("--callable needs a kernel", "name the one that the callable computes");
  if (!ours && !std::filesystem::is_regular_file(a.callable))
    throw UserError(fmt::format("--callable got '{}', which is no file", a.callable),
                    "wanted FILE.so, FILE.cpp as 'eject' writes it, or 'ours'");
  if (a.device != "cpu:0" && !(ours && a.device.starts_with("cuda:")))
    throw UserError(fmt::format("--callable {} got --device {}", a.callable, a.device),
                    "wanted cpu:0, or, for 'ours', cuda:N");
  if (!a.target.empty()) expect_callable(kernels::kernel_named(a.target), a);
  std::vector<nlohmann::json> rows;
  int rejected = 0;
  for (const KernelEntry& k : kernels::kernel_list())
    if (a.target.empty() || a.target == k.name) rejected += !judge_kernel(k, a, rows);
  if (rows.empty()) throw UserError(fmt::format("no kernel lists a problem of {}", *a.dtype));
  if (a.target.empty()) say(fmt::format("{} kernels, {} rejected\n", rows.size(), rejected), a);
  if (a.json) write_json(*a.json, rows);
  return rejected == 0 ? 0 : 1;
}

}  // namespace tw::cli
