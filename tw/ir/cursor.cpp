#include "tw/ir/impl/cursor.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mutex>
#include <set>

#include "tw/base/error.h"
#include "tw/ir/infer.h"
#include "tw/ir/print.h"

namespace tw {
namespace {

// Deeper or longer expressions are refused before the recursive expression parser sees them.
constexpr int kMaxNesting = 100;
constexpr size_t kMaxExprText = 4000;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

template <class T>
bool read_whole(const std::string& s, T& value) {
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  return error == std::errc() && end == s.data() + s.size() && !s.empty();
}

// "file:line" in a comment; leaves `at` alone when it is something else.
void read_place(const std::string& comment, SourceLoc& at) {
  const size_t begin = comment.find_first_not_of(' ');
  const size_t colon = comment.rfind(':');
  if (begin == std::string::npos || colon == std::string::npos || colon <= begin) return;
  unsigned line = 0;
  if (!read_whole(comment.substr(colon + 1), line) || line == 0) return;
  at = {intern_file(comment.substr(begin, colon - begin)), line};
}

}  // namespace

std::vector<TextLine> split_lines(const std::string& text, const char* file) {
  std::vector<TextLine> lines;
  unsigned number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string s = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    TextLine l{"", {file, number}, {file, number}};
    if (const size_t comment = s.find("//"); comment != std::string::npos) {
      read_place(s.substr(comment + 2), l.written);
      s.resize(comment);
    }
    if (std::all_of(s.begin(), s.end(), is_blank)) continue;
    l.text = std::move(s);
    lines.push_back(std::move(l));
  }
  return lines;
}

const char* intern_file(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

void Cursor::blanks() {
  while (pos_ < text_.size() && is_blank(text_[pos_])) ++pos_;
}

bool Cursor::done() {
  blanks();
  return pos_ == text_.size();
}

bool Cursor::next_is(std::string_view token) {
  blanks();
  return text_.compare(pos_, token.size(), token) == 0;
}

bool Cursor::take(std::string_view token) {
  if (!next_is(token)) return false;
  pos_ += token.size();
  return true;
}

bool Cursor::take_word(std::string_view word) {
  blanks();
  const size_t end = pos_ + word.size();
  if (text_.compare(pos_, word.size(), word) != 0) return false;
  if (end < text_.size() && is_word_char(text_[end])) return false;
  pos_ = end;
  return true;
}

void Cursor::expect(std::string_view token) {
  if (!take(token)) wanted(fmt::format("'{}'", token));
}

void Cursor::expect_end() {
  if (!done()) wanted("the end of the line");
}

std::string Cursor::word() {
  blanks();
  const size_t begin = pos_;
  while (pos_ < text_.size() && is_word_char(text_[pos_])) ++pos_;
  return text_.substr(begin, pos_ - begin);
}

std::string Cursor::token() {
  blanks();
  const size_t end = std::min(text_.find_first_of(" \t\r,:(){}[]", pos_), text_.size());
  std::string s = text_.substr(pos_, end - pos_);
  pos_ = end;
  return s;
}

std::string Cursor::identifier(const char* what) {
  const size_t begin = pos_;
  std::string s = word();
  if (!is_identifier(s)) {
    pos_ = begin;
    wanted(what);
  }
  return s;
}

std::string Cursor::label() {
  expect("%");
  std::string s = word();
  if (pos_ < text_.size() && text_[pos_] == '.') {
    ++pos_;
    s += "." + word();
  }
  const size_t dot = s.find('.');
  const std::string name = dot == std::string::npos ? "" : s.substr(0, dot);
  const std::string number = dot == std::string::npos ? s : s.substr(dot + 1);
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos ||
      (dot != std::string::npos && !is_identifier(name)))
    fail(fmt::format("got '%{}', wanted a value such as %3 or %acc.3", s));
  return s;
}

std::string Cursor::quoted() {
  expect("\"");
  std::string s;
  while (pos_ < text_.size() && text_[pos_] != '"') {
    unsigned code = 0;
    const char* begin = text_.data() + pos_ + 2;
    const bool escape = text_.compare(pos_, 2, "\\x") == 0 && pos_ + 4 <= text_.size();
    if (escape && std::from_chars(begin, begin + 2, code, 16).ptr == begin + 2) {
      s += static_cast<char>(code);
      pos_ += 4;
    } else {
      s += text_[pos_++];
    }
  }
  expect("\"");
  return s;
}

int64_t Cursor::integer(const char* what) {
  const size_t begin = pos_;
  int64_t value = 0;
  if (!read_whole(token(), value)) {
    pos_ = begin;
    wanted(what);
  }
  return value;
}

Number Cursor::number(DType t) {
  const size_t begin = pos_;
  const std::string s = token();
  Number n{!is_float(t), 0, 0};
  uint64_t wide = 0;
  bool good = false;
  if (is_float(t)) {
    good = read_whole(s, n.f);
  } else if (t == u64) {
    good = read_whole(s, wide);
    n.i = static_cast<int64_t>(wide);
  } else {
    good = read_whole(s, n.i);
  }
  if (!good) {
    pos_ = begin;
    wanted(fmt::format("a constant of {}", name(t)));
  }
  return n;
}

int Cursor::axis() {
  if (!take_word("axis")) wanted("'axis <number>'");
  const int64_t a = integer("an axis");
  if (a < 0 || a >= static_cast<int64_t>(kMaxRank)) fail(fmt::format("there is no axis {}", a));
  return static_cast<int>(a);
}

Opcode Cursor::opcode() {
  for (int k = 0; k < kOpcodeCount; ++k)
    if (take_word(info(static_cast<Opcode>(k)).name)) return static_cast<Opcode>(k);
  wanted("an op");
}

DType Cursor::dtype() {
  const size_t begin = pos_;
  const auto t = dtype_named(word());
  if (!t) {
    pos_ = begin;
    wanted("a dtype");
  }
  return *t;
}

Type Cursor::type() {
  Type t{dtype(), {}};
  expect("[");
  if (take("]")) return t;
  do {
    t.shape.push_back(integer("an extent"));
  } while (take(","));
  expect("]");
  return t;
}

// A word ends an expression only after an operand, so that a dim may have its name ("step step 2").
bool Cursor::stops_here(std::string_view stop, size_t begin) const {
  if (text_.compare(pos_, stop.size(), stop) != 0) return false;
  if (!is_word_char(stop[0])) return true;
  const size_t end = pos_ + stop.size();
  if (pos_ == begin || is_word_char(text_[pos_ - 1])) return false;
  if (end < text_.size() && is_word_char(text_[end])) return false;
  const size_t before = text_.find_last_not_of(" \t\r", pos_ - 1);
  return before != std::string::npos && (is_word_char(text_[before]) || text_[before] == ')');
}

Expr Cursor::expr(std::initializer_list<std::string_view> stops, const Resolve& resolve) {
  blanks();
  const size_t begin = pos_;
  int depth = 0, signs = 0;
  auto stop = [&](std::string_view s) { return stops_here(s, begin); };
  for (; pos_ < text_.size(); ++pos_) {
    if (depth <= 0 && std::any_of(stops.begin(), stops.end(), stop)) break;
    if (text_[pos_] == '(') ++depth;
    if (text_[pos_] == ')') --depth;
    if (text_[pos_] == '-') ++signs;
    if (depth > kMaxNesting || signs > kMaxNesting || pos_ - begin > kMaxExprText)
      fail("this integer expression is too long");
  }
  if (pos_ == text_.size())
    fail(fmt::format("got '{}', wanted an integer expression and then '{}'", text_.substr(begin),
                     fmt::join(stops, "' or '")));
  try {
    return parse_expr(text_.substr(begin, pos_ - begin), resolve);
  } catch (const UserError& e) {
    throw UserError(at_, e.message(), e.hint());
  }
}

void Cursor::fail(const std::string& what, const std::string& hint) const {
  throw UserError(at_, what, hint);
}

void Cursor::wanted(const std::string& what) const {
  size_t begin = pos_;
  while (begin < text_.size() && is_blank(text_[begin])) ++begin;
  const size_t end = std::min(text_.find_first_of(" \t\r", begin), text_.size());
  if (begin == text_.size()) fail(fmt::format("the line ends, wanted {}", what));
  fail(fmt::format("got '{}', wanted {}", text_.substr(begin, end - begin), what));
}

}  // namespace tw
