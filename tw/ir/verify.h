#pragma once

#include <string>

#include "tw/ir/program.h"

namespace tw {

/// Throws InternalError("after pass '<pass>': ...", text of the program) when a rule of the ir is
/// broken: names, counts and attributes of the table, one definition per value, dominance, symbols
/// in scope, types, views, constants, region shapes. Accepts any Program without undefined
/// behaviour.
void verify(const Program& p, const std::string& pass);

}  // namespace tw
