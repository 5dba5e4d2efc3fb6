#pragma once

#include <optional>
#include <string>

#include "tw/ir/program.h"

namespace tw {

struct Violation {
  SourceLoc at;
  std::string what;
};

/// The first rule of the ir that the program breaks. Accepts any Program without undefined
/// behaviour: ids, counts and attributes are checked before they are used.
std::optional<Violation> first_violation(const Program& p);

/// The rules about one op of a program whose ids, counts, attributes and symbols are sound. Throws
/// Violation or UserError.
void check_op(const Program& p, const Facts& facts, const Op& op);

}  // namespace tw
