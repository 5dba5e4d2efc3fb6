#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::cpu {

/// The format language of emitted text: `$word` in a pattern is replaced by the value given for
/// `word`: one capital letter, or small letters and digits as far as they go. A word without a
/// value is a bug and throws.
using Fill = std::vector<std::pair<std::string_view, std::string>>;
std::string fill(std::string_view pattern, const Fill& values);

/// Lines of text at an indentation.
class Writer {
 public:
  explicit Writer(int indent = 0) : indent_(indent) {}
  /// One line, or several separated by newlines; the empty text is an empty line.
  void line(std::string_view text = "");
  void line(std::string_view pattern, const Fill& values) { line(fill(pattern, values)); }
  void open(std::string_view text);         ///< a line, then one step deeper
  void close(std::string_view text = "}");  ///< one step back, then a line
  void deeper() { ++indent_; }
  void append(const Writer& w);  ///< its lines, at this indentation
  bool empty() const { return lines_.empty(); }
  std::string text() const;

 private:
  struct Line {
    int indent;
    std::string text;
  };
  int indent_ = 0;
  std::vector<Line> lines_;
};

}  // namespace tw::cpu
