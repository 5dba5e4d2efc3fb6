#include "tw/graph/onnx/structure.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unordered_map>
#include <unordered_set>

#include "tw/base/error.h"

namespace tw::graph::onnx {

namespace {

/// Names that have a value, as nodes go by.
class Values {
 public:
  explicit Values(const Model& m) {
    for (const auto& v : m.inputs) names_.insert(v.name);
    for (const auto& [name, tensor] : m.initializers) names_.insert(name);
    for (const auto& [name, why] : m.refused) names_.insert(name);
    for (const Node& n : m.nodes)
      for (const std::string& name : n.outputs) makers_.emplace(name, &n);
  }

  void use(const std::string& user, const std::string& name) const {
    if (names_.contains(name)) return;
    if (const auto at = makers_.find(name); at != makers_.end())
      throw UserError(
          fmt::format("{} uses '{}' before {} makes it", user, name, at->second->title()),
          "nodes must be in an order in which values come before their use");
    const std::vector<std::string> known(names_.begin(), names_.end());
    throw UserError(fmt::format("{} uses '{}', which nothing makes", user, name),
                    near_names(name, known));
  }

  void make(const Node& n, const std::string& name) {
    if (!names_.insert(name).second)
      throw UserError(fmt::format("{} makes '{}', which there is already", n.title(), name));
  }

 private:
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, const Node*> makers_;
};

/// An operator that some node has and we lack.
struct Lacking {
  const Node* first = nullptr;
  int nodes = 0;
  std::string why;
};

std::string domain_text(const std::string& domain) {
  return domain.empty() ? "" : fmt::format(" of domain '{}'", domain);
}

std::string text_of(const Lacking& l) {
  const std::string count = l.nodes == 1 ? "" : fmt::format(", {} nodes", l.nodes);
  return fmt::format(
      "{}{} ({}, node '{}'{})", l.first->op, domain_text(l.first->domain), l.why,
      l.first->name.empty() && !l.first->outputs.empty() ? l.first->outputs[0] : l.first->name,
      count);
}

/// The entry, or why there is none.
const Operator* operator_of(const Model& m, const Node& n, std::string& why) {
  const auto opset = m.opsets.find(n.domain);
  if (opset == m.opsets.end()) {
    why = "its domain has no opset in the model";
    return nullptr;
  }
  std::vector<std::string> ranges;
  for (const Operator& o : operators()) {
    if (n.op != o.name || n.domain != o.domain) continue;
    if (o.since <= opset->second && opset->second <= o.until) return &o;
    ranges.push_back(fmt::format("{} to {}", o.since, o.until));
  }
  why = fmt::format("opset {}", opset->second);
  if (!ranges.empty()) why += fmt::format(", wanted {}", fmt::join(ranges, " or "));
  return nullptr;
}

}  // namespace

std::string near_names(const std::string& name, const std::vector<std::string>& known) {
  constexpr size_t kMostKnown = 32, kMostLength = 128;
  const bool is_short =
      std::ranges::all_of(known, [&](const std::string& k) { return k.size() < kMostLength; });
  if (known.size() > kMostKnown || !is_short || name.size() > kMostLength) return "";
  std::vector<std::string> sorted = known;
  std::ranges::sort(sorted);
  return did_you_mean(name, sorted);
}

void check_structure(const Model& m) {
  Values values(m);
  for (const Node& n : m.nodes) {
    for (const std::string& name : n.inputs)
      if (!name.empty()) values.use(n.title(), name);
    for (const std::string& name : n.outputs)
      if (!name.empty()) values.make(n, name);
  }
  for (const ValueInfo& v : m.outputs) values.use("the list of outputs", v.name);
}

std::vector<const Operator*> operators_of(const Model& m) {
  std::vector<const Operator*> all;
  std::map<std::pair<std::string, std::string>, const Operator*> known;
  std::map<std::pair<std::string, std::string>, Lacking> lacking;
  for (const Node& n : m.nodes) {
    const std::pair key(n.domain, n.op);
    if (const auto at = known.find(key); at != known.end()) {
      all.push_back(at->second);
    } else if (Lacking& l = lacking[key]; l.nodes++ == 0) {
      l.first = &n;
      all.push_back(operator_of(m, n, l.why));
      if (all.back() == nullptr) continue;
      known[key] = all.back();
      lacking.erase(key);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [key, l] : lacking) texts.push_back(text_of(l));
  if (!texts.empty())
    throw UserError(fmt::format("operators that are not supported: {}", fmt::join(texts, "; ")));
  return all;
}

}  // namespace tw::graph::onnx
