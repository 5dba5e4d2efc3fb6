#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tw/cli/verb.h"
#include "tw/kernels/entry.h"
#include "tw/tensor/tensor.h"

namespace tw::cli {

/// A kernel, a problem and its tensors, as the flags of the command name them.
struct Call {
  const kernels::KernelEntry* entry;
  kernels::Problem problem;
  std::vector<kernels::Argument> arguments;
  std::vector<Tensor> inputs, outputs;  ///< each in declaration order
  /// Inputs that no flag names, with the seeds of their values.
  std::vector<std::pair<std::string, uint64_t>> made_up;

  std::vector<TensorView> input_views() const;
  std::vector<TensorView> output_views() const;
};

bool is_kernel(const std::string& name);

/// The problem of --shape, --dtype and --option, completed with the usual extents.
kernels::Problem problem_of(const kernels::KernelEntry& k, const Arguments& a);

/// True when the flags name extents or options: one problem is meant, not a list of the kernel.
bool names_problem(const Arguments& a);

/// The type of --dtype; UserError when there is none of that name.
std::optional<DType> dtype_of(const Arguments& a);

/// The problem that the flags name; where they name none, those of `list` that have the type of
/// --dtype, completed. UserError when the kernel named as the target has none.
std::vector<kernels::Problem> problems_of(const kernels::KernelEntry& k, const Arguments& a,
                                          const std::vector<kernels::Problem>& list);

/// The problem and its tensors: files of --input are read (extents that --shape leaves open come
/// from them), the other inputs are N(0, 1) values. UserError naming flag, tensor, got and wanted.
Call call_of(const Arguments& a);

/// Which axis of the problem an extent of an argument is; empty where it is none.
std::string axis_at(const kernels::KernelEntry& k, const kernels::Problem& p,
                    const std::string& argument, size_t dim);

/// "name=value" split at the first '='; UserError that shows the wanted form where a part lacks.
std::pair<std::string, std::string> split_pair(const std::string& flag, const std::string& text,
                                               const std::string& form);

/// The whole number that a flag got; UserError naming the flag, got and wanted otherwise.
int64_t whole_number(const std::string& flag, const std::string& text,
                     int64_t least = std::numeric_limits<int64_t>::min(),
                     int64_t most = std::numeric_limits<int64_t>::max());

/// What --input says of an input that is made up: the seed of random:SEED, nothing of a file.
std::optional<uint64_t> seed_of(const std::string& source);

/// "A=random:1, B=random:2", the inputs that no flag names, is said on standard output.
void print_made_up(const std::vector<std::pair<std::string, uint64_t>>& inputs);

/// UserError: the flag names the same thing twice.
[[noreturn]] void refuse_twice(const std::string& flag, const std::string& name);

/// Fills a tensor with N(0, 1) values of that seed (integers: 0..15).
void fill_random(const TensorView& t, uint64_t seed);

}  // namespace tw::cli
