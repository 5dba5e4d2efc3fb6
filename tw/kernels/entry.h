#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tw/check/reference.h"
#include "tw/check/verify.h"
#include "tw/ir/program.h"
#include "tw/target/machine.h"
#include "tw/tensor/tensor.h"

namespace tw::kernels {

/// One instance of a kernel's family: what a caller knows before any tensor exists.
struct Problem {
  std::map<std::string, int64_t> shape = {};  ///< extent of every axis, e.g. {"m", 1024}
  DType dtype = f32;                          ///< of the main inputs and outputs
  std::map<std::string, std::string> options =
      {};  ///< e.g. {"epilogue", "bias_gelu"}; absent: the first value
  int64_t extent(const std::string& axis) const;      ///< UserError naming the axis when absent
  std::string option(const std::string& name) const;  ///< "" when absent
  bool operator==(const Problem&) const = default;
};
std::string to_string(const Problem& p);  ///< "m=64,n=32 f32 epilogue=bias"

using check::Argument;

/// A kernel of the library: everything that the command, the tests and the benchmarks need to know
/// of it.
struct KernelEntry {
  struct Axis {
    const char* name;
    int64_t usual;  ///< when the caller does not say
    const char* sentence;
  };
  struct Option {
    const char* name;
    std::vector<const char*> values;  ///< the first is the default
    const char* sentence;
  };

  const char* name;
  const char* sentence;
  check::Family family;
  std::vector<Axis> axes;
  std::vector<Option> options;
  std::vector<DType> dtypes;
  std::vector<Argument> (*arguments)(const Problem&);
  /// The tile program, its tiling chosen for the problem and the machine (few tilings, many
  /// shapes).
  Program (*trace)(const Problem&, const Target&);
  /// Plain loops in double, written apart from the program. Inputs in declaration order.
  check::Reference (*reference)(const Problem&, std::span<const TensorView> inputs);
  std::vector<Problem> (*sweep)();  ///< odd, empty and usual shapes: what tests run
  std::vector<Problem> (*bench)();  ///< what benchmarks run
};

/// The library, sorted by name.
const std::vector<KernelEntry>& kernel_list();
/// The entry of that name; UserError naming near ones.
const KernelEntry& kernel_named(const std::string& name);
/// `p` with usual extents and default options filled in; UserError for unknown axes, options,
/// values and dtypes.
Problem complete(const KernelEntry& k, Problem p);

}  // namespace tw::kernels
