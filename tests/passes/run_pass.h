#pragma once

#include <string>

#include "tw/passes/pipeline.h"

namespace tw::test {

/// What the pass makes of the program, for a machine of that name with the default mapping and no
/// facts of layout. The program is verified before and after.
Program run_pass(decltype(Pass::run) pass, Program p, const std::string& machine = "generic");

}  // namespace tw::test
