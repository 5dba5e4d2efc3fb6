#pragma once

#include "tw/jit/kernel.h"
#include "tw/measure/contestant.h"

namespace tw::check {

/// The contestant that compiles a program and runs it on cpu:0: kind "kernel". Its `about` is the
/// mapping that was chosen.
measure::ContestantSpec kernel_contestant(const std::string& name, const Program& p,
                                          const Mapping& mapping = {});

/// Makes contestants of kind "kernel"; null for other kinds. For measure::serve_worker.
std::unique_ptr<measure::Contestant> make_contestant(const measure::ContestantSpec& spec,
                                                     const measure::Task& task);

}  // namespace tw::check
