#pragma once

#include <string>

#include "tw/ir/program.h"

namespace tw {

struct PrintOptions {
  bool lines = false;  ///< end each op with its place in the user's file
  bool names = true;  ///< keep the names that users gave to values; false prints the canonical text
                      ///< of cache keys
};

/// The program as text that parse() reads back.
std::string print(const Program& p, PrintOptions o = {});
std::string print(const Program& p, const Op& op);

/// Reads what print() writes (with or without lines). Throws UserError at {file, line of the text}
/// on anything else.
Program parse(const std::string& text, const std::string& file = "<ir>");

/// What text can hold as a name: [A-Za-z_][A-Za-z0-9_]*.
bool is_identifier(const std::string& s);
/// Names that text gives to coordinates and counters, which a dim cannot have: "pid0", "i3".
bool is_symbol_word(const std::string& s);

}  // namespace tw
