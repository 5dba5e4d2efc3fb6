#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tw/ir/program.h"

namespace tw {

/// A file name as SourceLoc needs it: valid for the life of the process, one copy per name.
const char* intern_file(const std::string& name);

/// A line of ir text that is not blank, without its comment.
struct TextLine {
  std::string text;
  SourceLoc at;       ///< in the text
  SourceLoc written;  ///< what a comment "// file:line" says, else `at`
};
std::vector<TextLine> split_lines(const std::string& text, const char* file);

/// Reads one line of ir text from left to right. Every failed wish is a UserError at the line.
class Cursor {
 public:
  using Resolve = std::function<std::optional<Symbol>(const std::string&)>;
  Cursor(std::string text, SourceLoc at) : text_(std::move(text)), at_(at) {}

  SourceLoc at() const { return at_; }
  bool done();  ///< only blanks are left
  bool next_is(std::string_view token);
  bool take(std::string_view token);      ///< skips the token when it comes next
  bool take_word(std::string_view word);  ///< the same for a whole word
  void expect(std::string_view token);
  void expect_end();

  std::string word();   ///< the letters, digits and underscores that come next, perhaps none
  std::string token();  ///< everything up to a blank or one of , : ( ) { } [ ]
  std::string identifier(const char* what);
  std::string label();   ///< a value: "%3" or "%acc.3"
  std::string quoted();  ///< what stands in double quotes, \xNN decoded
  int64_t integer(const char* what);
  Number number(DType t);
  Opcode opcode();
  int axis();  ///< "axis <number>"
  DType dtype();
  Type type();
  /// The expression up to the first of the stops outside parentheses; one must come.
  Expr expr(std::initializer_list<std::string_view> stops, const Resolve& resolve);

  [[noreturn]] void fail(const std::string& what, const std::string& hint = "") const;
  [[noreturn]] void wanted(const std::string& what) const;  ///< "got '...', wanted <what>"

 private:
  void blanks();
  bool stops_here(std::string_view stop, size_t begin) const;

  std::string text_;
  SourceLoc at_;
  size_t pos_ = 0;
};

}  // namespace tw
