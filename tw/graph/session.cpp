#include "tw/graph/session.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <list>
#include <mutex>

#include "tw/base/error.h"
#include "tw/graph/fuse.h"
#include "tw/graph/onnx/importer.h"

namespace tw::graph {

namespace {

/// Plans for extents of their own that are kept.
constexpr size_t kMostPlans = 8;

std::vector<std::string> names_of(const std::vector<Port>& ports) {
  std::vector<std::string> all;
  for (const Port& p : ports) all.push_back(p.name);
  return all;
}

Port declared_port(const onnx::ValueInfo& v) {
  Port p{v.name, v.dtype, {}};
  if (!v.has_shape) p.dims = {".."};
  for (const onnx::Extent& e : v.dims) p.dims.push_back(onnx::to_string(e));
  return p;
}

Port graph_port(const Graph& g, const std::string& name, TensorId t) {
  Port p{name, g.tensor(t).dtype, {}};
  for (const Expr& e : g.tensor(t).dims) p.dims.push_back(g.text(e));
  return p;
}

}  // namespace

struct Session::State {
  using Extents = std::vector<std::vector<int64_t>>;  // of inputs in order

  State(onnx::Model m, SessionOptions o) : model(std::move(m)), options(std::move(o)) {
    for (const auto& v : model.inputs) inputs.push_back(declared_port(v));
    for (const auto& v : model.outputs) outputs.push_back(declared_port(v));
    try {
      general = planned({});
    } catch (const NeedsSizes& e) {
      why_sizes = e.what();
      return;
    }
    const Graph& g = general->graph();
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = graph_port(g, inputs[i].name, g.inputs()[i]);
    for (size_t i = 0; i < outputs.size(); ++i)
      outputs[i] = graph_port(g, outputs[i].name, g.outputs()[i].second);
  }

  std::shared_ptr<const Plan> planned(const Dims& dims) const {
    Graph g = onnx::import(model, dims);
    fuse(g);
    return std::make_shared<const Plan>(
        std::move(g), options.device,
        PlanOptions{.threads = options.threads, .memory_limit = options.memory_limit});
  }

  /// The values in the order of inputs. UserError for names that lack or are unknown.
  template <class T>
  std::vector<T> in_order(const std::map<std::string, T>& by_name) const {
    for (const auto& [name, value] : by_name)
      if (std::ranges::find(inputs, name, &Port::name) == inputs.end())
        throw UserError(fmt::format("the model has no input '{}'", name),
                        did_you_mean(name, names_of(inputs)));
    std::vector<T> all;
    std::vector<std::string> missing;
    for (const Port& p : inputs) {
      const auto at = by_name.find(p.name);
      if (at == by_name.end())
        missing.push_back(fmt::format("'{}'", p.name));
      else
        all.push_back(at->second);
    }
    if (!missing.empty())
      throw UserError(fmt::format("the model's input{} {} {} missing",
                                  missing.size() == 1 ? "" : "s", fmt::join(missing, ", "),
                                  missing.size() == 1 ? "is" : "are"));
    return all;
  }

  Prepared prepared(const Extents& extents) {
    if (general) {
      try {
        return {general, general->sizes(extents)};
      } catch (const NeedsSizes&) {  // these extents want nodes of their own
      }
    }
    std::shared_ptr<const Plan> plan = plan_of(extents);
    std::vector<int64_t> sizes = plan->sizes(extents);
    return {std::move(plan), std::move(sizes)};
  }

  std::shared_ptr<const Plan> kept(const Extents& extents) {
    const std::lock_guard lock(mutex);
    const auto at = std::ranges::find(plans, extents, [](const auto& p) { return p.first; });
    if (at == plans.end()) return nullptr;
    plans.splice(plans.begin(), plans, at);
    return plans.front().second;
  }

  std::shared_ptr<const Plan> plan_of(const Extents& extents) {
    if (auto plan = kept(extents)) return plan;
    const std::lock_guard building(build_mutex);  // one caller builds, others wait for its plan
    if (auto plan = kept(extents)) return plan;
    Dims dims;
    for (size_t i = 0; i < inputs.size(); ++i) dims[inputs[i].name] = extents[i];
    auto plan = planned(dims);
    const std::lock_guard lock(mutex);
    plans.emplace_front(extents, plan);
    if (plans.size() > kMostPlans) plans.pop_back();
    return plan;
  }

  onnx::Model model;
  SessionOptions options;
  std::vector<Port> inputs, outputs;
  std::shared_ptr<const Plan> general;  // for all extents; may be null
  std::string why_sizes;                // why it is null
  std::mutex mutex, build_mutex;
  std::list<std::pair<Extents, std::shared_ptr<const Plan>>> plans;  // most recently used first
};

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

Session Session::load(const std::string& path, const SessionOptions& options) {
  onnx::Model model = onnx::read_model(path);
  try {
    return Session(std::make_unique<State>(std::move(model), options));
  } catch (const UserError& e) {
    throw UserError(fmt::format("'{}': {}", path, e.message()), e.hint());
  }
}

const std::vector<Port>& Session::inputs() const { return state_->inputs; }
const std::vector<Port>& Session::outputs() const { return state_->outputs; }
std::shared_ptr<const Plan> Session::general_plan() const { return state_->general; }
const std::string& Session::why_sizes() const { return state_->why_sizes; }

Session::Prepared Session::plan(const Dims& dims) const {
  return state_->prepared(state_->in_order(dims));
}

void Session::prepare(const Dims& dims) const {
  const Prepared p = plan(dims);
  p.plan->prepare(p.sizes);
}

std::vector<NamedTensor> Session::run(const std::map<std::string, TensorView>& inputs) const {
  const std::vector<TensorView> ordered = state_->in_order(inputs);
  State::Extents extents;
  for (size_t i = 0; i < ordered.size(); ++i) {
    const Port& want = state_->inputs[i];
    if (ordered[i].dtype != want.dtype)
      throw UserError(fmt::format("input '{}' is {}, wanted {}", want.name, name(ordered[i].dtype),
                                  name(want.dtype)));
    extents.push_back(ordered[i].dims);
  }
  std::vector<Tensor> made = state_->prepared(extents).plan->run(ordered);
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < made.size(); ++i)
    named.push_back({state_->outputs[i].name, std::move(made[i])});
  return named;
}

}  // namespace tw::graph
