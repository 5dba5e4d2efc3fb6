#pragma once

#include <string>

#include "tw/ir/program.h"

namespace tw {

/// Throws InternalError("after pass '<pass>': ...", text of the program) when a rule of the ir is
/// broken: counts of the table, types, dominance, one definition per value, axes and permutations,
/// symbols in scope, region shapes.
void verify(const Program& p, const std::string& pass);

}  // namespace tw
