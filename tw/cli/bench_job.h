#pragma once

#include "tw/cli/bench_case.h"

namespace tw::cli {

/// Larger than the share of the last cache that one guest of a big machine ever holds.
inline constexpr int64_t kColdBytes = int64_t{384} << 20;

/// The case as a job of the timer: tensors, values, and verification of a secret sample of rows
/// against the kernel's double reference.
measure::Job job_of(const BenchCase& c);

/// The kernel's program for the case, and the values of its dims.
Program program_of(const BenchCase& c, const CpuMachine& machine);
std::vector<int64_t> dims_of(const Program& p, const BenchCase& c);

}  // namespace tw::cli
