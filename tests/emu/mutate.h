#pragma once

#include <string>
#include <vector>

namespace tw::test {

/// A change of a text by rule; lines keep their numbers.
struct RuleMutant {
  std::string kind;  ///< delete, swap, literal, operator
  std::string name;  ///< "12:5 2 -> 3 | the line": line and column, the change, the line as it was
  std::string text;
};

/// All changes of one place each, in order of the text: a call that is a statement goes away, or
/// changes places with the next, where that is one too; an integer literal is one more, one less or
/// twice as large; + and -, < and <=, > and >=, == and !=, && and || take each other's place.
/// Macros' bodies are text, other directives, comments, strings and launch bounds are not.
std::vector<RuleMutant> mutants_of(const std::string& text);

}  // namespace tw::test
