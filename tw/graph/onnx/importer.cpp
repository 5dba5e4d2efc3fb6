#include "tw/graph/onnx/importer.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unordered_map>

#include "tw/base/error.h"
#include "tw/graph/onnx/alike.h"
#include "tw/graph/onnx/structure.h"

namespace tw::graph::onnx {

namespace {

std::string dims_text(const ValueInfo& v) {
  std::vector<std::string> all;
  for (const Extent& e : v.dims) all.push_back(to_string(e));
  return v.has_shape ? fmt::format("[{}]", fmt::join(all, ",")) : "any";
}

const ValueInfo& input_named(const Model& m, const std::string& name) {
  std::vector<std::string> known;
  for (const ValueInfo& v : m.inputs) {
    if (v.name == name) return v;
    known.push_back(v.name);
  }
  throw UserError(fmt::format("the model has no input '{}'", name), near_names(name, known));
}

/// Extents of the inputs: as the model says, with numbers for those that are given.
class InputExtents {
 public:
  InputExtents(const Model& m, const InputDims& given) : given_(given) {
    for (const auto& [name, dims] : given) bind(input_named(m, name), dims);
  }

  std::vector<Expr> of(const ValueInfo& v, Graph& g) const {
    std::vector<Expr> dims;
    const auto given = given_.find(v.name);
    if (given != given_.end()) {
      for (int64_t d : given->second) dims.emplace_back(d);
      return dims;
    }
    if (!v.has_shape)
      throw NeedsSizes(fmt::format("input '{}' has no shape in the model", v.name),
                       "give its extents");
    for (size_t k = 0; k < v.dims.size(); ++k) dims.push_back(extent(v, k, g));
    return dims;
  }

 private:
  void bind(const ValueInfo& v, const std::vector<int64_t>& dims) {
    bool fits = !v.has_shape || dims.size() == v.dims.size();
    for (size_t k = 0; k < dims.size() && fits; ++k) {
      fits = dims[k] >= 0;
      if (!v.has_shape || !fits) continue;
      if (const auto* number = std::get_if<int64_t>(&v.dims[k])) fits = *number == dims[k];
      const auto* name = std::get_if<std::string>(&v.dims[k]);
      if (name == nullptr) continue;
      const int64_t there = numbers_.emplace(*name, dims[k]).first->second;
      if (there != dims[k])
        throw UserError(fmt::format("dim '{}' of input '{}' is {}, elsewhere it is {}", *name,
                                    v.name, dims[k], there));
    }
    if (!fits)
      throw UserError(fmt::format("input '{}' has extents [{}], wanted {}", v.name,
                                  fmt::join(dims, ","), dims_text(v)));
  }

  Expr extent(const ValueInfo& v, size_t k, Graph& g) const {
    if (const auto* number = std::get_if<int64_t>(&v.dims[k])) return *number;
    const auto* name = std::get_if<std::string>(&v.dims[k]);
    if (name == nullptr) return g.dim(fmt::format("{}?{}", v.name, k));
    const auto number = numbers_.find(*name);
    return number != numbers_.end() ? Expr(number->second) : g.dim(*name);
  }

  const InputDims& given_;
  std::map<std::string, int64_t> numbers_;  // of named extents
};

/// Values by name, and the nodes that make them one after the other.
class Importer {
 public:
  Importer(const Model& m, const InputDims& dims)
      : m_(m), g_(m.graph_name.empty() ? "model" : m.graph_name) {
    const InputExtents extents(m, dims);
    for (const ValueInfo& v : m.inputs) {
      if (!v.refused.empty()) throw UserError(fmt::format("input '{}' {}", v.name, v.refused));
      values_[v.name] = g_.input(v.name, v.dtype, extents.of(v, g_));
    }
  }

  Graph run(const std::vector<const Operator*>& operators) {
    for (size_t i = 0; i < m_.nodes.size(); ++i) add(m_.nodes[i], *operators[i]);
    for (const ValueInfo& v : m_.outputs) g_.output(v.name, value(v.name, "the list of outputs"));
    return std::move(g_);
  }

 private:
  TensorId value(const std::string& name, const std::string& user) {
    if (name.empty()) return -1;
    if (const auto at = values_.find(name); at != values_.end()) return at->second;
    if (const auto at = m_.refused.find(name); at != m_.refused.end())
      throw UserError(fmt::format("{}: tensor '{}' {}", user, name, at->second));
    return values_[name] = g_.constant(name, m_.initializers.at(name));
  }

  void add(const Node& n, const Operator& o) {
    std::vector<TensorId> inputs;
    for (const std::string& name : n.inputs) inputs.push_back(value(name, n.title()));
    Context c(g_, n, m_.opsets.at(n.domain), std::move(inputs));
    check_alike(c);
    const std::vector<TensorId> made = handled(c, o);
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (n.outputs[i].empty()) continue;
      if (i >= made.size() || made[i] < 0)
        c.fail(fmt::format("output {}, '{}', is not supported", i, n.outputs[i]));
      values_[n.outputs[i]] = made[i];
    }
  }

  /// What the handler makes; its errors name the node.
  static std::vector<TensorId> handled(Context& c, const Operator& o) {
    const std::string title = c.node().title();
    const auto named = [&](const UserError& e) {
      return e.message().starts_with(title) ? e.message()
                                            : fmt::format("{}: {}", title, e.message());
    };
    try {
      return o.handler(c);
    } catch (const NeedsSizes& e) {
      throw NeedsSizes(named(e), e.hint());
    } catch (const UserError& e) {
      throw UserError(named(e), e.hint());
    }
  }

  const Model& m_;
  Graph g_;
  std::unordered_map<std::string, TensorId> values_;
};

}  // namespace

Graph import(const Model& m, const InputDims& dims) {
  check_structure(m);
  const std::vector<const Operator*> operators = operators_of(m);
  return Importer(m, dims).run(operators);
}

}  // namespace tw::graph::onnx
