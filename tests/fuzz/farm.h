#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/fuzz/judge.h"

namespace tw::test {

using Work = std::function<Verdict(uint64_t seed)>;

/// Runs work(seed) for seeds first, first + 1, .. in child processes, `jobs` at a time, so that a
/// program that crashes or hangs (60 s) is a verdict too. `done` takes the verdicts as they come,
/// in any order; no further program starts once it returns false.
void farm(uint64_t first, uint64_t count, int jobs, const Work& work,
          const std::function<bool(uint64_t seed, const Verdict&)>& done);

/// One run of work in a child process.
Verdict in_child(const std::function<Verdict()>& work);

}  // namespace tw::test
