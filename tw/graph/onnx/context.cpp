#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tw/base/error.h"
#include "tw/graph/contents.h"
#include "tw/graph/onnx/importer.h"
#include "tw/graph/onnx/known_values.h"

namespace tw::graph::onnx {

namespace {

using Kind = Attribute::Kind;

const char* kind_name(Kind k) {
  switch (k) {
    case Kind::integer:
      return "an integer";
    case Kind::real:
      return "a float";
    case Kind::text:
      return "a string";
    case Kind::tensor:
      return "a tensor";
    case Kind::integers:
      return "a list of integers";
    case Kind::reals:
      return "a list of floats";
    case Kind::texts:
      return "a list of strings";
    case Kind::other:
      return "of a kind that we lack";
  }
  throw InternalError("an attribute of no kind");
}

/// The attribute, which must be of that kind; null when the node does not have it.
const Attribute* attribute_of(const Context& c, const std::string& name, Kind kind) {
  const auto at = c.node().attributes.find(name);
  if (at == c.node().attributes.end()) return nullptr;
  if (at->second.kind != kind)
    c.fail(fmt::format("attribute '{}' is {}, wanted {}", name, kind_name(at->second.kind),
                       kind_name(kind)));
  return &at->second;
}

}  // namespace

std::string Context::name() const {
  if (!node_.name.empty() || node_.outputs.empty()) return node_.name;
  return node_.outputs[0];
}

void Context::fail(const std::string& what, const std::string& hint) const {
  throw UserError(fmt::format("{}: {}", node_.title(), what), hint);
}

TensorId Context::in(size_t input) const {
  if (!has(input)) fail(fmt::format("input {} is missing", input));
  return inputs_[input];
}

bool Context::has_attribute(const std::string& name) const {
  return node_.attributes.contains(name);
}

int64_t Context::integer(const std::string& name, int64_t otherwise) const {
  const Attribute* a = attribute_of(*this, name, Kind::integer);
  return a != nullptr ? a->integers[0] : otherwise;
}

float Context::real(const std::string& name, float otherwise) const {
  const Attribute* a = attribute_of(*this, name, Kind::real);
  return a != nullptr ? a->reals[0] : otherwise;
}

std::string Context::text(const std::string& name, const std::string& otherwise) const {
  const Attribute* a = attribute_of(*this, name, Kind::text);
  return a != nullptr ? a->texts[0] : otherwise;
}

std::vector<int64_t> Context::integers(const std::string& name) const {
  const Attribute* a = attribute_of(*this, name, Kind::integers);
  return a != nullptr ? a->integers : std::vector<int64_t>();
}

std::vector<float> Context::reals(const std::string& name) const {
  const Attribute* a = attribute_of(*this, name, Kind::reals);
  return a != nullptr ? a->reals : std::vector<float>();
}

const Tensor& Context::tensor(const std::string& name) const {
  const Attribute* a = attribute_of(*this, name, Kind::tensor);
  if (a == nullptr) fail(fmt::format("attribute '{}' is missing", name));
  if (!a->refused.empty()) fail(fmt::format("attribute '{}' {}", name, a->refused));
  return *a->tensor;
}

std::vector<Expr> Context::contents(size_t input) const {
  const TensorInfo& t = info(input);
  if (t.contents) return *t.contents;
  const std::string title = fmt::format("input {}, '{}',", input, t.name);
  if (!is_int(t.dtype) && t.dtype != b1)
    fail(fmt::format("{} is {}, wanted integers", title, tw::name(t.dtype)));
  const DecidedBy by = decided_by(g, in(input));
  if (by == DecidedBy::data)
    fail(title + " depends on data that is known when it runs, wanted a constant");
  if (by == DecidedBy::sizes)
    throw NeedsSizes(fmt::format("{}: {} depends on the sizes of inputs", node_.title(), title));
  const std::optional<Tensor> value = known_value(g, in(input));
  std::optional<std::vector<Expr>> elements;
  if (value) elements = contents_of(*value);
  if (!elements) fail(fmt::format("{} is too long, wanted at most {}", title, kMostContents));
  return *elements;
}

std::vector<int64_t> Context::numbers(size_t input) const {
  std::vector<int64_t> all;
  for (const Expr& e : contents(input))
    all.push_back(g.number(e, fmt::format("{}: an element of input {}", node_.title(), input)));
  return all;
}

std::vector<double> Context::values(size_t input) const {
  const TensorInfo& t = info(input);
  if (t.constant) return to_doubles(*t.constant);
  if (t.contents) {
    const std::vector<int64_t> all = numbers(input);
    return {all.begin(), all.end()};
  }
  const DecidedBy by = decided_by(g, in(input));
  if (by == DecidedBy::sizes)
    throw NeedsSizes(fmt::format("{}: input {}, '{}', depends on the sizes of inputs",
                                 node_.title(), input, t.name));
  const std::optional<Tensor> value = known_value(g, in(input));
  if (!value) fail(fmt::format("input {}, '{}', is no constant", input, t.name));
  return to_doubles(*value);
}

void Context::wants(size_t input, std::span<const DType> types) const {
  if (std::ranges::find(types, dtype(input)) != types.end()) return;
  std::vector<std::string> names;
  for (DType t : types) names.emplace_back(tw::name(t));
  fail(fmt::format("input {}, '{}', is {}, wanted {}", input, info(input).name,
                   tw::name(dtype(input)), fmt::join(names, ", ")));
}

}  // namespace tw::graph::onnx
