#include "tw/cli/call.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <set>

#include "tw/base/error.h"
#include "tw/num/codec.h"
#include "tw/tensor/npy.h"

namespace tw::cli {

using kernels::Argument;
using kernels::KernelEntry;
using kernels::Problem;

std::vector<TensorView> Call::input_views() const { return {inputs.begin(), inputs.end()}; }
std::vector<TensorView> Call::output_views() const { return {outputs.begin(), outputs.end()}; }

std::pair<std::string, std::string> split_pair(const std::string& flag, const std::string& text,
                                               const std::string& form) {
  size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    throw UserError(fmt::format("{} got '{}'", flag, text), fmt::format("wanted {}", form));
  return {text.substr(0, at), text.substr(at + 1)};
}

int64_t whole_number(const std::string& flag, const std::string& text, int64_t least,
                     int64_t most) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UserError(fmt::format("{} got '{}'", flag, text), "wanted a whole number");
  if (value < least || value > most)
    throw UserError(fmt::format("{} got '{}'", flag, text),
                    fmt::format("wanted a whole number from {} to {}", least, most));
  return value;
}

[[noreturn]] void refuse_twice(const std::string& flag, const std::string& name) {
  throw UserError(fmt::format("{} names '{}' twice", flag, name), "give it once");
}

static void add_shape(Problem& p, const std::string& list) {
  for (size_t begin = 0; begin <= list.size();) {
    size_t end = std::min(list.find(',', begin), list.size());
    auto [axis, value] =
        split_pair("--shape", list.substr(begin, end - begin), "axis=extent, e.g. m=64,n=32");
    if (!p.shape.emplace(axis, whole_number("--shape " + axis, value)).second)
      refuse_twice("--shape", axis);
    begin = end + 1;
  }
}

static Problem said_by(const Arguments& a) {
  Problem p;
  for (const std::string& list : a.shape) add_shape(p, list);
  for (const std::string& text : a.options) {
    auto option = split_pair("--option", text, "name=value");
    if (!p.options.insert(option).second) refuse_twice("--option", option.first);
  }
  p.dtype = dtype_of(a).value_or(f32);
  return p;
}

std::optional<DType> dtype_of(const Arguments& a) {
  if (!a.dtype) return {};
  std::optional<DType> t = dtype_named(*a.dtype);
  if (!t)
    throw UserError(fmt::format("--dtype got '{}'", *a.dtype), "wanted a type such as f32 or bf16");
  return t;
}

bool is_kernel(const std::string& name) {
  return std::ranges::any_of(kernels::kernel_list(),
                             [&](const KernelEntry& k) { return name == k.name; });
}

Problem problem_of(const KernelEntry& k, const Arguments& a) { return complete(k, said_by(a)); }

bool names_problem(const Arguments& a) { return !a.shape.empty() || !a.options.empty(); }

std::vector<Problem> problems_of(const KernelEntry& k, const Arguments& a,
                                 const std::vector<Problem>& list) {
  if (names_problem(a)) return {problem_of(k, a)};
  const std::optional<DType> t = dtype_of(a);
  std::vector<Problem> all;
  for (const Problem& p : list)
    if (!t || p.dtype == *t) all.push_back(complete(k, p));
  if (t && all.empty() && a.target == k.name) {
    std::set<std::string> known;
    for (const Problem& p : list) known.insert(name(p.dtype));
    throw UserError(
        fmt::format("--dtype got '{}', of which '{}' lists no problem", *a.dtype, k.name),
        fmt::format("wanted one of {}, or name a problem by --shape", fmt::join(known, ", ")));
  }
  return all;
}

// ---- inputs from files

/// That extent of the argument; none where the kernel has no such problem.
static std::optional<int64_t> extent_at(const KernelEntry& k, const Problem& p,
                                        const std::string& argument, size_t dim) {
  try {
    for (const Argument& a : k.arguments(p))
      if (a.name == argument && dim < a.dims.size()) return a.dims[dim];
  } catch (const UserError&) {  // of axes that must fit each other
  }
  return std::nullopt;
}

/// Of the axes that have this extent the one that it follows, whichever axis of the problem is
/// another.
std::string axis_at(const KernelEntry& k, const Problem& p, const std::string& argument,
                    size_t dim) {
  std::vector<Problem> probes = {p};
  for (const auto& [axis, n] : p.shape) {
    for (const int64_t other : {2 * n, 3 * n, n + 1, n + 2, n / 2, int64_t{1}}) {
      probes.push_back(p);
      probes.back().shape[axis] = other;
    }
  }
  std::vector<std::string> left;
  for (const auto& [axis, n] : p.shape) left.push_back(axis);
  for (const Problem& probe : probes) {
    const std::optional<int64_t> extent = extent_at(k, probe, argument, dim);
    if (extent) std::erase_if(left, [&](const auto& a) { return probe.extent(a) != *extent; });
  }
  return left.empty() ? "" : left.front();
}

static const Argument& argument_named(const std::vector<Argument>& all, const std::string& flag,
                                      const std::string& name, bool output) {
  std::vector<std::string> known;
  for (const Argument& a : all) {
    if (a.output != output) continue;
    if (a.name == name) return a;
    known.push_back(a.name);
  }
  throw UserError(fmt::format("{} names '{}', which the kernel does not have", flag, name),
                  did_you_mean(name, known));
}

static std::string dims_text(const std::vector<int64_t>& dims) {
  return fmt::format("[{}]", fmt::join(dims, ","));
}

/// Extents that the user did not give are read off the files' shapes.
static void shape_from_file(const KernelEntry& k, const Problem& usual, const Argument& argument,
                            const Tensor& t, Problem& said) {
  if (t.dims().size() != argument.dims.size())
    throw UserError(fmt::format("--input {} has shape {}", argument.name, dims_text(t.dims())),
                    fmt::format("wanted {} axes", argument.dims.size()));
  for (size_t d = 0; d < argument.dims.size(); ++d) {
    std::string axis = axis_at(k, usual, argument.name, d);
    if (!axis.empty()) said.shape.try_emplace(axis, t.dims()[d]);
  }
}

static void expect_dims(const Argument& a, const Tensor& t) {
  if (t.dims() != a.dims || t.dtype() != a.dtype)
    throw UserError(fmt::format("--input {} is {}", a.name, to_string(t.view())),
                    fmt::format("wanted {}{}", name(a.dtype), dims_text(a.dims)));
}

/// A file holds whole bytes: of rows that end inside one the rest is cut off.
static Tensor read_packed(const Tensor& t, const Argument& wanted) {
  const int64_t last = wanted.dims.empty() ? 0 : wanted.dims.back();
  const int64_t whole = elements_of_bytes(t.dtype());
  if (last % whole == 0 || t.dims().size() != wanted.dims.size()) return t;
  const int64_t there = t.dims().back();
  const bool fits = last < there && byte_count(t.dtype(), {last}) == byte_count(t.dtype(), {there});
  return fits ? t.slice(static_cast<int>(t.dims().size()) - 1, 0, last) : t;
}

std::optional<uint64_t> seed_of(const std::string& source) {
  const std::string random = "random:";
  if (!source.starts_with(random)) return std::nullopt;
  return static_cast<uint64_t>(whole_number("--input random:", source.substr(random.size())));
}

void print_made_up(const std::vector<std::pair<std::string, uint64_t>>& inputs) {
  std::vector<std::string> parts;
  for (const auto& [name, seed] : inputs) parts.push_back(fmt::format("{}=random:{}", name, seed));
  if (!parts.empty()) fmt::print("  inputs that no --input names: {}\n", fmt::join(parts, ", "));
}

Call call_of(const Arguments& a) {
  const KernelEntry& k = kernels::kernel_named(a.target);
  Problem said = said_by(a), usual = complete(k, said);
  std::map<std::string, Tensor> files;
  std::map<std::string, uint64_t> seeds;
  for (const std::string& input : a.inputs) {
    auto [name, source] = split_pair("--input", input, "name=FILE.npy or name=random:SEED");
    const std::vector<Argument> arguments = k.arguments(usual);
    const Argument& argument = argument_named(arguments, "--input", name, false);
    if (files.contains(name) || seeds.contains(name)) refuse_twice("--input", name);
    if (const auto seed = seed_of(source)) {
      seeds[name] = *seed;
      continue;
    }
    files[name] = read_packed(read_npy(source, argument.dtype), argument);
    shape_from_file(k, usual, argument, files[name], said);
  }

  Call call{&k, complete(k, said), {}, {}, {}, {}};
  call.arguments = k.arguments(call.problem);
  uint64_t next_seed = 1;
  for (const Argument& argument : call.arguments) {
    if (argument.output) {
      call.outputs.push_back(host_tensor(argument.dtype, argument.dims));
    } else if (files.contains(argument.name)) {
      expect_dims(argument, files[argument.name]);
      call.inputs.push_back(files[argument.name]);
    } else {
      call.inputs.push_back(host_tensor(argument.dtype, argument.dims));
      if (!seeds.contains(argument.name)) call.made_up.emplace_back(argument.name, next_seed);
      fill_random(call.inputs.back(), seeds.try_emplace(argument.name, next_seed).first->second);
    }
    ++next_seed;
  }
  return call;
}

/// Box and Muller's transform of Philox words.
void fill_random(const TensorView& t, uint64_t seed) {
  for (int64_t i = 0; i < t.count(); ++i) {
    Philox r = philox(seed, 0, static_cast<uint64_t>(i));
    double u = (r.word[0] + 0.5) * 0x1p-32, v = (r.word[1] + 0.5) * 0x1p-32;
    double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    if (t.dtype == e8m0) normal = std::abs(normal);  // a scale
    set(t, i, is_float(t.dtype) ? normal : static_cast<double>(r.word[2] % 16));
  }
}

}  // namespace tw::cli
