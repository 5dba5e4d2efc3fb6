#pragma once

#include "tw/cli/bench_case.h"

namespace tw::cli {

/// The case as a job of the timer: tensors, values, and verification of a secret sample of rows
/// against the kernel's double reference.
measure::Job job_of(const BenchCase& c);

/// The kernel's program for the case, and the values of its dims.
Program program_of(const BenchCase& c, const CpuMachine& machine);
std::vector<int64_t> dims_of(const Program& p, const BenchCase& c);

}  // namespace tw::cli
