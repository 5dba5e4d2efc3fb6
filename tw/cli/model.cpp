#include "tw/cli/model.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "tw/base/error.h"
#include "tw/cli/call.h"
#include "tw/cli/output.h"
#include "tw/graph/onnx/model.h"
#include "tw/graph/session.h"
#include "tw/measure/compare.h"
#include "tw/tensor/file.h"
#include "tw/tensor/message.h"
#include "tw/tensor/npy.h"

namespace tw::cli {

using graph::NamedTensor;
using graph::Port;
using graph::Session;

namespace {

constexpr int64_t kShown = 8;

/// Flags that mean something for kernels only.
void refuse_kernel_flags(const Arguments& a) {
  const std::vector<std::pair<const char*, bool>> given = {{"--dtype", a.dtype.has_value()},
                                                           {"--option", !a.options.empty()},
                                                           {"--mapping", !a.mapping.empty()},
                                                           {"--check", a.check}};
  for (const auto& [flag, is_given] : given)
    if (is_given) throw UserError(fmt::format("{} is for kernels, the target is a model", flag));
}

Session load(const Arguments& a) {
  refuse_kernel_flags(a);
  graph::SessionOptions options;
  options.threads = a.threads;
  options.device = Device::open(a.device);
  return Session::load(a.target, options);
}

std::string port_text(const Port& p) {
  return fmt::format("{}[{}]", name(p.dtype), fmt::join(p.dims, ","));
}

const Port& input_named(const Session& s, const std::string& flag, const std::string& name) {
  std::vector<std::string> known;
  for (const Port& p : s.inputs()) {
    if (p.name == name) return p;
    known.push_back(p.name);
  }
  throw UserError(fmt::format("{} names '{}', which is no input of the model", flag, name),
                  did_you_mean(name, known));
}

/// The numbers of --shape name=1,2048.
std::vector<int64_t> extents_of(const std::string& name, const std::string& list) {
  std::vector<int64_t> dims;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    dims.push_back(whole_number("--shape " + name, list.substr(begin, end - begin), 0));
    begin = end + 1;
  }
  return dims;
}

Session::Dims shapes_of(const Session& s, const Arguments& a) {
  Session::Dims shapes;
  for (const std::string& text : a.shape) {
    const auto [name, list] = split_pair("--shape", text, "input=extent,extent.., e.g. x=1,2048");
    const Port& p = input_named(s, "--shape", name);
    if (!shapes.emplace(p.name, extents_of(name, list)).second) refuse_twice("--shape", name);
  }
  return shapes;
}

bool is_open(const std::string& extent) {
  return extent.empty() || extent.find_first_not_of("0123456789") != std::string::npos;
}

/// The extents of an input that is made up: those of --shape, else the model's own.
std::vector<int64_t> made_up_extents(const Port& p, const Session::Dims& shapes) {
  if (const auto at = shapes.find(p.name); at != shapes.end()) return at->second;
  std::vector<int64_t> dims;
  for (const std::string& d : p.dims) {
    if (is_open(d))
      throw UserError(fmt::format("input '{}' is {}: some extent is open", p.name, port_text(p)),
                      fmt::format("give --shape {}=.. or --input {}=FILE.npy", p.name, p.name));
    dims.push_back(whole_number("--shape " + p.name, d));
  }
  return dims;
}

Tensor made_up_input(const Port& p, uint64_t seed, const Session::Dims& shapes) {
  Tensor t = host_tensor(p.dtype, made_up_extents(p, shapes));
  fill_random(t, seed);
  return t;
}

Tensor read_input(const Port& p, const std::string& source, const Session::Dims& shapes) {
  if (const auto seed = seed_of(source)) return made_up_input(p, *seed, shapes);
  Tensor t = source.ends_with(".pb") ? graph::onnx::read_tensor(source) : read_npy(source, p.dtype);
  if (const auto at = shapes.find(p.name); at != shapes.end() && at->second != t.dims())
    throw UserError(fmt::format("--input {} has extents [{}], --shape says [{}]", p.name,
                                fmt::join(t.dims(), ","), fmt::join(at->second, ",")));
  return t;
}

/// The tensors of --input; those that no flag names are random.
std::map<std::string, Tensor> inputs_of(const Session& s, const Arguments& a) {
  const Session::Dims shapes = shapes_of(s, a);
  std::map<std::string, Tensor> inputs;
  for (const std::string& text : a.inputs) {
    const auto [name, source] =
        split_pair("--input", text, "name=FILE.npy, name=FILE.pb or name=random:SEED");
    const Port& p = input_named(s, "--input", name);
    if (inputs.contains(name)) refuse_twice("--input", name);
    inputs[name] = read_input(p, source, shapes);
  }
  std::vector<std::pair<std::string, uint64_t>> made_up;
  for (size_t i = 0; i < s.inputs().size(); ++i) {
    const Port& p = s.inputs()[i];
    if (inputs.contains(p.name)) continue;
    inputs[p.name] = made_up_input(p, i + 1, shapes);
    made_up.emplace_back(p.name, i + 1);
  }
  if (shows_text(a)) print_made_up(made_up);
  return inputs;
}

/// FOLDER/<name>.npy, with what no file name holds replaced.
std::string file_in(const std::string& folder, const std::string& output) {
  std::string file = output;
  std::ranges::replace(file, '/', '_');
  return fmt::format("{}{}{}.npy", folder, folder.ends_with('/') ? "" : "/", file);
}

/// Where each output goes: all of them into --output FOLDER, or those of --output name=FILE.npy.
std::map<std::string, std::string> files_of(const Session& s, const Arguments& a) {
  std::map<std::string, std::string> files, folder;
  std::vector<std::string> known;
  for (const Port& p : s.outputs()) known.push_back(p.name);
  for (const std::string& text : a.outputs) {
    if (text.find('=') == std::string::npos && !text.ends_with(".npy")) {
      if (!folder.empty())
        throw UserError(fmt::format("--output got '{}', a second folder", text), "give one");
      for (const std::string& name : known) folder.emplace(name, file_in(text, name));
      continue;
    }
    const auto [name, file] = split_pair("--output", text, "FOLDER or name=FILE.npy");
    if (std::ranges::find(known, name) == known.end())
      throw UserError(fmt::format("--output names '{}', which is no output of the model", name),
                      did_you_mean(name, known));
    if (!files.emplace(name, file).second) refuse_twice("--output", name);
  }
  files.merge(folder);
  std::set<std::string> distinct;
  for (const auto& [name, file] : files) {
    if (!distinct.insert(file).second)
      throw UserError(fmt::format("--output writes '{}' twice", file),
                      "name the files: --output name=FILE.npy");
    expect_writable(file);
  }
  return files;
}

/// Of a contiguous tensor.
std::string element_of(const TensorView& t, int64_t i) {
  if (is_float(t.dtype)) return element_text(t.dtype, get(t, i), 0);
  const int64_t above = 64 - bits(t.dtype);
  const auto raw = static_cast<int64_t>(load_bits(t.dtype, t.data, i) << above);
  const auto low = static_cast<int64_t>(load_bits(t.dtype, t.data, i));
  return element_text(t.dtype, 0, is_signed_int(t.dtype) ? raw >> above : low);
}

void print_tensor(const NamedTensor& n) {
  const Tensor& t = n.tensor;
  std::vector<std::string> first;
  for (int64_t i = 0; i < std::min(t.count(), kShown); ++i) first.push_back(element_of(t, i));
  fmt::print("  {} {}[{}] = {}{}\n", n.name, name(t.dtype()), fmt::join(t.dims(), ","),
             fmt::join(first, " "), t.count() > kShown ? " .." : "");
}

nlohmann::json port_json(const Port& p) {
  return {{"name", p.name}, {"dtype", name(p.dtype)}, {"dims", p.dims}};
}

nlohmann::json tensor_json(const NamedTensor& n) {
  nlohmann::json first = nlohmann::json::array();
  for (int64_t i = 0; i < std::min(n.tensor.count(), kShown); ++i)
    first.push_back(element_of(n.tensor, i));
  return {{"name", n.name},
          {"dtype", name(n.tensor.dtype())},
          {"dims", n.tensor.dims()},
          {"first", first}};
}

void print_ports(const char* what, const std::vector<Port>& ports) {
  fmt::print("  {}\n", what);
  for (const Port& p : ports) fmt::print("    {} {}\n", p.name, port_text(p));
}

/// The extents for which a plan is explained; nothing when some are open.
std::optional<Session::Dims> explained_extents(const Session& s, const Arguments& a) {
  Session::Dims shapes = shapes_of(s, a);
  const auto has_open = [](const Port& p) { return std::ranges::any_of(p.dims, is_open); };
  if (shapes.empty() && std::ranges::any_of(s.inputs(), has_open)) return std::nullopt;
  for (const Port& p : s.inputs()) shapes.emplace(p.name, made_up_extents(p, shapes));
  return shapes;
}

void print_steps(const std::vector<graph::StepInfo>& steps) {
  fmt::print("  {} steps\n", steps.size());
  for (size_t i = 0; i < steps.size(); ++i)
    fmt::print("    {:>3} {:<8} {}\n        {}\n", i, steps[i].program, steps[i].name,
               steps[i].text);
}

/// What there is to say of a model and its plan.
struct ModelStory {
  std::vector<std::string> dims;
  std::vector<graph::StepInfo> steps;
  std::optional<int64_t> workspace;
};

ModelStory story_of(const Session& s, const Arguments& a) {
  const std::optional<Session::Dims> extents = explained_extents(s, a);
  ModelStory story;
  if (s.general_plan()) {
    story.dims = s.general_plan()->graph().dim_names();
    story.steps = s.general_plan()->steps();
  }
  if (extents) {
    const Session::Prepared p = s.plan(*extents);
    story.steps = p.plan->steps();
    story.workspace = p.plan->workspace(p.sizes);
  }
  return story;
}

nlohmann::json story_json(const Session& s, const Arguments& a, const ModelStory& story) {
  nlohmann::json row = {{"model", a.target},
                        {"dims", story.dims},
                        {"any_extents", s.general_plan() != nullptr},
                        {"inputs", nlohmann::json::array()},
                        {"outputs", nlohmann::json::array()},
                        {"steps", nlohmann::json::array()}};
  for (const Port& p : s.inputs()) row["inputs"].push_back(port_json(p));
  for (const Port& p : s.outputs()) row["outputs"].push_back(port_json(p));
  for (const graph::StepInfo& step : story.steps)
    row["steps"].push_back({{"name", step.name}, {"program", step.program}, {"text", step.text}});
  if (story.workspace) row["workspace_bytes"] = *story.workspace;
  return row;
}

void print_story(const Session& s, const Arguments& a, const ModelStory& story) {
  fmt::print("{}\n", a.target);
  print_ports("inputs", s.inputs());
  print_ports("outputs", s.outputs());
  if (!s.general_plan())
    fmt::print("  made anew for each extents of the inputs: {}\n", s.why_sizes());
  else if (!story.dims.empty())
    fmt::print("  dims, of any size: {}\n", fmt::join(story.dims, ", "));
  if (s.general_plan() || story.workspace) print_steps(story.steps);
  if (story.workspace)
    fmt::print("  workspace {} bytes\n", *story.workspace);
  else
    fmt::print("  give --shape input=extent,.. for the workspace\n");
}

/// A step of a plan and what it took.
struct StepTime {
  graph::StepInfo info;
  graph::StepWork work;
  double us = 0;
};

/// Medians over a second, of at least kLeastRuns runs.
std::vector<StepTime> timed_steps(const Session& s, const std::map<std::string, Tensor>& inputs) {
  constexpr int kLeastRuns = 5;
  Session::Dims dims;
  std::vector<TensorView> from;
  for (const Port& p : s.inputs()) {
    from.push_back(inputs.at(p.name));
    dims[p.name] = from.back().dims;
  }
  const Session::Prepared p = s.plan(dims);
  const std::vector<Tensor> made = p.plan->run(from);
  const std::vector<TensorView> to(made.begin(), made.end());
  std::vector<StepTime> steps;
  const std::vector<graph::StepWork> work = p.plan->work(p.sizes);
  for (const graph::StepInfo& info : p.plan->steps()) steps.push_back({info, work[steps.size()]});
  std::vector<std::vector<double>> us(steps.size());
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (int run = 0; run < kLeastRuns || Clock::now() - begin < std::chrono::seconds(1); ++run) {
    Clock::time_point last = Clock::now();
    p.plan->run(from, to, [&](size_t i) {
      const Clock::time_point now = Clock::now();
      us[i].push_back(std::chrono::duration<double, std::micro>(now - last).count());
      last = now;
    });
  }
  for (size_t i = 0; i < steps.size(); ++i) steps[i].us = measure::median(us[i]);
  return steps;
}

int profile_model(const Session& s, const std::map<std::string, Tensor>& inputs,
                  const Arguments& a) {
  const std::vector<StepTime> steps = timed_steps(s, inputs);
  double all = 0;
  for (const StepTime& t : steps) all += t.us;
  std::vector<nlohmann::json> rows;
  if (shows_text(a))
    fmt::print("  {:>4} {:>10} {:>6} {:>8} {:>8}  {:<9} {}\n", "step", "us", "share", "GB/s",
               "GFLOP/s", "program", "name");
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepTime& t = steps[i];
    rows.push_back({{"step", i},
                    {"name", t.info.name},
                    {"program", t.info.program},
                    {"text", t.info.text},
                    {"us", t.us},
                    {"bytes", t.work.bytes},
                    {"flops", t.work.flops}});
    if (shows_text(a))
      fmt::print("  {:>4} {:>10.1f} {:>5.1f}% {:>8.2f} {:>8.2f}  {:<9} {}\n", i, t.us,
                 100 * t.us / all, 1e-3 * static_cast<double>(t.work.bytes) / t.us,
                 1e-3 * t.work.flops / t.us, t.info.program, t.info.name);
  }
  if (shows_text(a)) fmt::print("   all {:>10.1f}\n", all);
  if (a.json) write_json(*a.json, rows);
  return 0;
}

}  // namespace

bool is_model(const std::string& target) {
  if (target.ends_with(".onnx")) return true;
  if (target.find_first_of("./") != std::string::npos)
    throw UserError(fmt::format("'{}' is neither a kernel nor a model", target),
                    "wanted a file that ends in .onnx, or the name of a kernel");
  return false;
}

int run_model(const Arguments& a) {
  const Session s = load(a);
  if (a.profile && !a.outputs.empty())
    throw UserError("--profile shows no outputs", "leave --output away");
  const std::map<std::string, std::string> files = files_of(s, a);
  const std::map<std::string, Tensor> inputs = inputs_of(s, a);
  if (a.profile) return profile_model(s, inputs, a);
  const std::vector<NamedTensor> outputs = s.run({inputs.begin(), inputs.end()});
  std::vector<nlohmann::json> rows;
  for (const NamedTensor& n : outputs) {
    rows.push_back(tensor_json(n));
    if (shows_text(a)) print_tensor(n);
    const auto at = files.find(n.name);
    if (at == files.end()) continue;
    write_npy(at->second, n.tensor);
    rows.back()["file"] = at->second;
    if (shows_text(a)) fmt::print("  wrote {}\n", at->second);
  }
  if (a.json) write_json(*a.json, rows);
  return 0;
}

int explain_model(const Arguments& a) {
  const Session s = load(a);
  const ModelStory story = story_of(s, a);
  if (shows_text(a)) print_story(s, a, story);
  if (a.json) write_json(*a.json, {story_json(s, a, story)});
  return 0;
}

}  // namespace tw::cli
