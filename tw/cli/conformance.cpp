#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tw/base/error.h"
#include "tw/cli/output.h"
#include "tw/cli/verbs.h"
#include "tw/graph/fuse.h"
#include "tw/graph/onnx/importer.h"
#include "tw/graph/plan.h"
#include "tw/runtime/device.h"

namespace tw::cli {

namespace onnx = graph::onnx;
namespace fs = std::filesystem;

namespace {

/// Of onnx.backend.test.runner: |got - want| <= kAbsolute + kRelative * |want|, of bf16 two ulp.
constexpr double kRelative = 1e-3, kAbsolute = 1e-7, kRelativeBf16 = 0x1p-6;

/// passed, wrong, refused: all operators are known, but not what this model wants of one.
/// unsupported: an operator, or a kind of value, is not known.
enum class Verdict { passed, wrong, refused, unsupported };

const char* name(Verdict v) {
  switch (v) {
    case Verdict::passed:
      return "passed";
    case Verdict::wrong:
      return "wrong";
    case Verdict::refused:
      return "refused";
    case Verdict::unsupported:
      return "unsupported";
  }
  throw InternalError("a verdict of no kind");
}

struct Outcome {
  Verdict verdict = Verdict::passed;
  std::string why;
};

bool is_supported(const onnx::Node& n, const onnx::Model& m) {
  const auto opset = m.opsets.find(n.domain);
  return opset != m.opsets.end() &&
         std::ranges::any_of(onnx::operators(), [&](const onnx::Operator& o) {
           return n.op == o.name && n.domain == o.domain && opset->second >= o.since &&
                  opset->second <= o.until;
         });
}

std::set<std::string> operators_of(const onnx::Model& m) {
  std::set<std::string> names;
  for (const onnx::Node& n : m.nodes) names.insert(n.op);
  return names;
}

/// The first thing of a model that is not known; empty when all is.
std::string unknown_part(const onnx::Model& m) {
  for (const onnx::Node& n : m.nodes)
    if (!is_supported(n, m)) return n.op;
  for (const auto* values : {&m.inputs, &m.outputs})
    for (const onnx::ValueInfo& v : *values)
      if (!v.refused.empty()) return fmt::format("'{}' {}", v.name, v.refused);
  for (const auto& [tensor, why] : m.refused) return fmt::format("'{}' {}", tensor, why);
  return "";
}

/// Tensors for these values. Older tests store bf16 as u16.
std::vector<Tensor> tensors_in(const fs::path& folder, const char* prefix,
                               const std::vector<onnx::ValueInfo>& values) {
  std::vector<Tensor> all;
  for (size_t i = 0; i < values.size(); ++i) {
    const fs::path file = folder / fmt::format("{}_{}.pb", prefix, i);
    const Tensor x = onnx::read_tensor(file.string());
    const bool bits = values[i].dtype == bf16 && x.dtype() == u16;
    all.push_back(bits ? x.bitcast(bf16) : x);
  }
  return all;
}

/// The model for inputs of these extents. Tests give as inputs what models give as constants: where
/// those are needed, inputs of at most one axis become constants, first integers, then all.
struct Imported {
  std::optional<graph::Graph> g;
  std::vector<TensorView> inputs;
};
Imported imported(const onnx::Model& model, const std::vector<Tensor>& data) {
  for (const int constants : {0, 1, 2}) {
    onnx::Model m = model;
    m.inputs.clear();
    Imported r;
    onnx::InputDims dims;
    for (size_t i = 0; i < model.inputs.size(); ++i) {
      const onnx::ValueInfo& v = model.inputs[i];
      const bool list = data.at(i).dims().size() <= 1;
      const bool fixed = constants == 2 || (constants == 1 && !is_float(v.dtype));
      if (list && fixed) {
        m.initializers[v.name] = data[i];
        continue;
      }
      m.inputs.push_back(v);
      dims[v.name] = data[i].dims();
      r.inputs.push_back(data[i].view());
    }
    try {
      r.g = onnx::import(m, dims);
      return r;
    } catch (const UserError&) {
      if (constants == 2) throw;
    }
  }
  throw InternalError("a model is imported in no way");
}

bool is_near(double got, double want, DType t) {
  if (std::isnan(want) || std::isinf(want)) return std::isnan(want) ? std::isnan(got) : got == want;
  const double relative = t == bf16 ? kRelativeBf16 : kRelative;
  return std::abs(got - want) <= kAbsolute + relative * std::abs(want);
}

/// What is wrong with an output; empty when it is right.
std::string difference(const TensorView& got, const TensorView& want) {
  if (got.dtype != want.dtype)
    return fmt::format("is {}, wanted {}", tw::name(got.dtype), tw::name(want.dtype));
  if (got.dims != want.dims)
    return fmt::format("has extents [{}], wanted [{}]", fmt::join(got.dims, ","),
                       fmt::join(want.dims, ","));
  const auto is_right = [&](int64_t i) {
    if (is_float(want.dtype)) return is_near(get(got, i), get(want, i), want.dtype);
    if (is_packed(want.dtype)) return get(got, i) == get(want, i);
    return load_bits(got.dtype, got.data, i) == load_bits(want.dtype, want.data, i);
  };
  for (int64_t i = 0; i < want.count(); ++i)
    if (!is_right(i))
      return fmt::format("has {} at element {}, wanted {}", get(got, i), i, get(want, i));
  return "";
}

std::string faults_of_run(const onnx::Model& m, const fs::path& folder) {
  const std::vector<Tensor> data = tensors_in(folder, "input", m.inputs);
  const std::vector<Tensor> want = tensors_in(folder, "output", m.outputs);
  Imported r = imported(m, data);
  graph::fuse(*r.g);
  const graph::Plan plan(std::move(*r.g), Device::open("cpu:0"));
  const std::vector<Tensor> got = plan.run(r.inputs);
  for (size_t i = 0; i < got.size(); ++i)
    if (const std::string fault = difference(got[i], want[i]); !fault.empty())
      return fmt::format("output '{}' {}", m.outputs[i].name, fault);
  return "";
}

Outcome outcome_of(const onnx::Model& m, const fs::path& test) {
  if (const std::string part = unknown_part(m); !part.empty()) return {Verdict::unsupported, part};
  try {
    for (int i = 0;; ++i) {
      const fs::path data = test / fmt::format("test_data_set_{}", i);
      if (i > 0 && !fs::exists(data)) return {};
      if (const std::string fault = faults_of_run(m, data); !fault.empty())
        return {Verdict::wrong, fault};
    }
  } catch (const UserError& e) {
    return {Verdict::refused, e.what()};
  } catch (const std::exception& e) {
    return {Verdict::wrong, e.what()};
  }
}

std::vector<fs::path> tests_in(const std::string& folder) {
  std::vector<fs::path> all;
  std::error_code failed;
  for (const auto& e : fs::directory_iterator(folder, failed))
    if (fs::exists(e.path() / "model.onnx")) all.push_back(e.path());
  if (all.empty())
    throw UserError(fmt::format("there are no tests in '{}'", folder),
                    "it has folders with model.onnx, as data/node of libonnx-testdata");
  std::sort(all.begin(), all.end());
  return all;
}

/// How many tests there were of each verdict.
struct Tally {
  int counts[4] = {};
  int& of(Verdict v) { return counts[static_cast<int>(v)]; }
  int all() const { return counts[0] + counts[1] + counts[2] + counts[3]; }
};

void say_tallies(std::map<std::string, Tally>& by_operator, Tally& all, const Arguments& a) {
  std::string text = fmt::format("{:<28}{:>7}{:>8}{:>7}{:>9}{:>13}\n", "operator", "tests",
                                 "passed", "wrong", "refused", "unsupported");
  for (auto& [op, t] : by_operator)
    text += fmt::format("{:<28}{:>7}{:>8}{:>7}{:>9}{:>13}\n", op, t.all(), t.of(Verdict::passed),
                        t.of(Verdict::wrong), t.of(Verdict::refused), t.of(Verdict::unsupported));
  const int passed = all.of(Verdict::passed);
  text +=
      fmt::format("{} of {} tests pass ({:.1f} %); {} wrong, {} refused, {} unsupported\n", passed,
                  all.all(), all.all() > 0 ? 100.0 * passed / all.all() : 0, all.of(Verdict::wrong),
                  all.of(Verdict::refused), all.of(Verdict::unsupported));
  say(text, a);
}

/// An operator without a test was not tested: that is no success.
void expect_tests_of(const std::vector<std::string>& operators,
                     const std::map<std::string, Tally>& by_operator) {
  for (const std::string& op : operators)
    if (!by_operator.contains(op))
      throw UserError(fmt::format("--op {} is in no test", op),
                      "wanted the name of an operator of ONNX, such as Conv");
}

bool is_asked_for(const std::set<std::string>& operators, const Arguments& a) {
  return a.ops.empty() ||
         std::ranges::any_of(a.ops, [&](const std::string& op) { return operators.contains(op); });
}

}  // namespace

int run_conformance(const Arguments& a) {
  const std::vector<fs::path> tests = tests_in(a.target);
  std::map<std::string, Tally> by_operator;
  Tally all;
  std::vector<nlohmann::json> rows;
  for (size_t i = 0; i < tests.size(); ++i) {
    const std::string title = tests[i].filename().string();
    std::set<std::string> operators;
    Outcome o;
    try {
      const onnx::Model m = onnx::read_model((tests[i] / "model.onnx").string());
      operators = operators_of(m);
      if (!is_asked_for(operators, a)) continue;
      show_progress(fmt::format("{}/{} {}", i + 1, tests.size(), title));
      o = outcome_of(m, tests[i]);
      show_progress("");
    } catch (const UserError& e) {
      if (!a.ops.empty()) continue;
      o = {Verdict::unsupported, e.what()};
    }
    ++all.of(o.verdict);
    for (const std::string& op : operators) ++by_operator[op].of(o.verdict);
    if (o.verdict == Verdict::wrong || o.verdict == Verdict::refused)
      say(fmt::format("{} {}: {}\n", name(o.verdict), title, o.why), a);
    rows.push_back({{"test", title}, {"verdict", name(o.verdict)}, {"why", o.why}});
  }
  say_tallies(by_operator, all, a);
  if (a.json) write_json(*a.json, rows);
  expect_tests_of(a.ops, by_operator);
  return all.of(Verdict::wrong) > 0 ? 1 : 0;
}

}  // namespace tw::cli
