#pragma once

#include <span>
#include <vector>

#include "tw/jit/kernel.h"
#include "tw/kernels/entry.h"

namespace tw::test {

/// A contiguous tensor of those elements.
Tensor tensor(DType t, std::vector<int64_t> dims, const std::vector<double>& values);

/// The kernel's outputs (guarded, poisoned before the run) for the problem that the inputs have.
std::vector<std::vector<double>> run_kernel(const std::string& kernel,
                                            const kernels::Problem& problem,
                                            const std::vector<Tensor>& inputs);

/// The same; each element must be within its bound of the kernel's reference.
std::vector<std::vector<double>> check_kernel(const std::string& kernel,
                                              const kernels::Problem& problem,
                                              const std::vector<Tensor>& inputs);

/// What check::Sweep runs: the entry at one problem on cpu:0.
check::Subject subject(const kernels::KernelEntry& entry, const kernels::Problem& problem);

/// Runs a program on contiguous tensors; its one output has these dims.
std::vector<double> run_program(Program p, const std::vector<Tensor>& inputs, DType out,
                                std::vector<int64_t> dims);

}  // namespace tw::test
