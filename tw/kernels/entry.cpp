#include "tw/kernels/entry.h"

#include <algorithm>

#include "tw/base/error.h"

namespace tw::kernels {

int64_t Problem::extent(const std::string& axis) const {
  auto it = shape.find(axis);
  if (it == shape.end())
    throw UserError("the shape has no axis '" + axis + "'", "add " + axis + "=...");
  return it->second;
}

std::string Problem::option(const std::string& name) const {
  auto it = options.find(name);
  return it == options.end() ? "" : it->second;
}

std::string to_string(const Problem& p) {
  std::string text;
  for (const auto& [axis, extent] : p.shape)
    text += (text.empty() ? "" : ",") + fmt::format("{}={}", axis, extent);
  text += std::string(" ") + name(p.dtype);
  for (const auto& [option, value] : p.options) text += fmt::format(" {}={}", option, value);
  return text;
}

/// "elementwise has op=gelu", of every kernel that has an option of that value; "" where none has.
static std::string kernels_with(const std::string& value) {
  std::string text;
  for (const KernelEntry& k : kernel_list())
    for (const auto& option : k.options)
      if (std::ranges::find(option.values, value) != option.values.end())
        text += fmt::format("{}{} has {}={}", text.empty() ? "" : ", ", k.name, option.name, value);
  return text;
}

const KernelEntry& kernel_named(const std::string& name) {
  std::vector<std::string> known;
  for (const KernelEntry& k : kernel_list()) {
    if (name == k.name) return k;
    known.push_back(k.name);
  }
  const std::string options = kernels_with(name);
  throw UserError(fmt::format("no kernel is called '{}'", name),
                  options.empty() ? did_you_mean(name, known) : options);
}

static void check_names(const KernelEntry& k, const Problem& p) {
  std::vector<std::string> axes, options;
  for (const auto& a : k.axes) axes.push_back(a.name);
  for (const auto& o : k.options) options.push_back(o.name);
  for (const auto& [axis, extent] : p.shape) {
    if (std::ranges::find(axes, axis) == axes.end())
      throw UserError(fmt::format("kernel '{}' has no axis '{}'", k.name, axis),
                      did_you_mean(axis, axes));
    if (extent < 0)
      throw UserError(fmt::format("axis '{}' is {}, which is negative", axis, extent),
                      "extents are >= 0");
  }
  for (const auto& [option, value] : p.options)
    if (std::ranges::find(options, option) == options.end())
      throw UserError(fmt::format("kernel '{}' has no option '{}'", k.name, option),
                      did_you_mean(option, options));
}

Problem complete(const KernelEntry& k, Problem p) {
  check_names(k, p);
  for (const auto& axis : k.axes) p.shape.try_emplace(axis.name, axis.usual);
  for (const auto& option : k.options) {
    std::vector<std::string> values(option.values.begin(), option.values.end());
    const std::string& value = p.options.try_emplace(option.name, values.front()).first->second;
    if (std::ranges::find(values, value) == values.end())
      throw UserError(fmt::format("option '{}' of kernel '{}' is '{}'", option.name, k.name, value),
                      did_you_mean(value, values));
  }
  if (std::ranges::find(k.dtypes, p.dtype) == k.dtypes.end()) {
    std::string known;
    for (DType t : k.dtypes) known += (known.empty() ? "" : ", ") + std::string(name(t));
    throw UserError(fmt::format("kernel '{}' has no {} form", k.name, name(p.dtype)),
                    "use one of " + known);
  }
  return p;
}

}  // namespace tw::kernels
