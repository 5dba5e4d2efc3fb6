#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tw/cli/output.h"
#include "tw/cli/verbs.h"
#include "tw/kernels/entry.h"

namespace tw::cli {

using kernels::KernelEntry;

static nlohmann::json to_json(const KernelEntry& k) {
  nlohmann::json row = {{"kernel", k.name}, {"sentence", k.sentence}};
  for (const auto& axis : k.axes) row["axes"][axis.name] = axis.usual;
  for (const auto& option : k.options) row["options"][option.name] = option.values;
  for (DType t : k.dtypes) row["dtypes"].push_back(name(t));
  return row;
}

static void describe(const KernelEntry& k) {
  fmt::print("{}: {}\n\naxes (--shape)\n", k.name, k.sentence);
  for (const auto& axis : k.axes)
    fmt::print("  {:<10} {}, usually {}\n", axis.name, axis.sentence, axis.usual);
  if (!k.options.empty()) fmt::print("options (--option)\n");
  for (const auto& option : k.options)
    fmt::print("  {:<10} {}: {}\n", option.name, option.sentence, fmt::join(option.values, ", "));
  fmt::print("types (--dtype)\n  ");
  for (DType t : k.dtypes) fmt::print("{} ", name(t));
  fmt::print("\ntensors of the usual problem\n");
  for (const kernels::Argument& a : k.arguments(complete(k, {.dtype = k.dtypes.front()})))
    fmt::print("  {:<10} {} {}[{}]\n", a.name, a.output ? "output" : "input ", name(a.dtype),
               fmt::join(a.dims, ","));
}

int run_kernels(const Arguments& a) {
  if (!a.target.empty()) {
    const KernelEntry& k = kernels::kernel_named(a.target);
    if (!a.json) {
      describe(k);
      return 0;
    }
  }
  std::vector<nlohmann::json> rows;
  for (const KernelEntry& k : kernels::kernel_list())
    if (a.target.empty() || a.target == k.name) rows.push_back(to_json(k));
  if (a.json) {
    write_json(*a.json, rows);
    return 0;
  }
  for (const KernelEntry& k : kernels::kernel_list()) fmt::print("{:<15} {}\n", k.name, k.sentence);
  fmt::print("\n`tilewright kernels NAME` describes one.\n");
  return 0;
}

}  // namespace tw::cli
