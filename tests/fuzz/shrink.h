#pragma once

#include <functional>

#include "tests/support/random_program.h"

namespace tw::test {

/// The smallest program and data that greedy steps reach while `fails` holds: stores and ops go,
/// loops and branches are replaced by what they hold, tensors become plain. Every candidate is
/// valid. At most `budget` candidates are tried.
RandomProgram shrink(RandomProgram r, const std::function<bool(const RandomProgram&)>& fails,
                     int budget = 300);

}  // namespace tw::test
