#include "tests/emu/mutate.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fmt/format.h>
#include <map>

namespace tw::test {
namespace {

enum class TokenKind : uint8_t { word, number, mark, directive };

struct Token {
  TokenKind kind;
  size_t begin, end;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// A text's tokens; of directives that are no macros' definitions, one each.
class Tokenizer {
 public:
  explicit Tokenizer(const std::string& text) : text_(text) {}

  std::vector<Token> all() {
    while (at_ < text_.size()) next();
    return std::move(tokens_);
  }

 private:
  bool here(const char* part) const {
    return text_.compare(at_, std::string(part).size(), part) == 0;
  }
  size_t end_of_line() const { return std::min(text_.find('\n', at_), text_.size()); }
  void add(TokenKind kind, size_t end) {
    tokens_.push_back({kind, at_, end});
    at_ = end;
  }

  void next() {
    const char c = text_[at_];
    if (c == ' ' || c == '\n') {
      ++at_;
    } else if (here("//")) {
      at_ = end_of_line();
    } else if (here("#define TW_BLOCKS")) {  // launch bounds
      add(TokenKind::directive, end_of_line());
    } else if (here("#define")) {  // the name and its parameters are no expression
      at_ = text_.find(' ', at_) + 1;
      size_t end = at_;
      while (is_word(text_[end])) ++end;
      if (text_[end] == '(') end = text_.find(')', end) + 1;
      add(TokenKind::directive, end);
    } else if (c == '#') {
      add(TokenKind::directive, end_of_line());
    } else if (c == '"') {
      add(TokenKind::mark, text_.find('"', at_ + 1) + 1);
    } else if (is_word(c)) {
      word();
    } else {
      mark();
    }
  }

  void word() {
    const bool number = std::isdigit(static_cast<unsigned char>(text_[at_])) != 0;
    size_t end = at_;
    while (is_word(text_[end]) || (number && text_[end] == '.') ||
           (number && text_[end] == '-' && text_[end - 1] == 'e'))
      ++end;
    if (text_.compare(at_, end - at_, "__launch_bounds__") == 0) end = text_.find(')', end) + 1;
    add(number ? TokenKind::number : TokenKind::word, end);
  }

  void mark() {
    for (const char* two :
         {"<=", ">=", "==", "!=", "&&", "||", "<<", ">>", "++", "--", "+=", "-="}) {
      if (here(two)) return add(TokenKind::mark, at_ + 2);
    }
    add(TokenKind::mark, at_ + 1);
  }

  const std::string& text_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
};

class Mutator {
 public:
  explicit Mutator(const std::string& text) : text_(text), tokens_(Tokenizer(text).all()) {}

  std::vector<RuleMutant> all() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      calls(i);
      if (tokens_[i].kind == TokenKind::number) literal(tokens_[i]);
      if (tokens_[i].kind == TokenKind::mark) exchange(tokens_[i]);
    }
    return std::move(mutants_);
  }

 private:
  std::string of(size_t i) const {
    return text_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin);
  }
  std::string between(size_t begin, size_t end) const { return text_.substr(begin, end - begin); }

  void add(const char* kind, const std::string& what, size_t begin, size_t end,
           const std::string& by) {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<long>(begin), '\n') + 1;
    const size_t start = begin == 0 ? 0 : text_.rfind('\n', begin - 1) + 1;
    const size_t first = text_.find_first_not_of(' ', start);
    const std::string whole = between(first, std::min(text_.find('\n', begin), text_.size()));
    mutants_.push_back({kind, fmt::format("{}:{} {} | {}", line, begin - start + 1, what, whole),
                        text_.substr(0, begin) + by + text_.substr(end)});
  }

  /// The index behind the bracket that closes the one at i.
  size_t behind(size_t i, const char* open, const char* close) const {
    int depth = 0;
    for (; i < tokens_.size(); ++i) {
      const std::string t = of(i);
      depth += t == open ? 1 : t == close ? -1 : 0;
      if (depth == 0) return i + 1;
    }
    return i;
  }

  /// The index behind a statement that is a call, and begins at i; 0 where none does.
  size_t call(size_t i) const {
    if (i == 0 || i + 3 >= tokens_.size() || tokens_[i].kind != TokenKind::word) return 0;
    const std::string before = of(i - 1);
    const bool begins = tokens_[i - 1].kind == TokenKind::directive || before == ";" ||
                        before == "{" || before == "}" || before == ")" || before == "else";
    if (!begins || of(i) == "if" || of(i) == "for") return 0;
    size_t next = i + 1;
    const bool adjacent = tokens_[next].begin == tokens_[i].end;  // else it compares
    if (adjacent && of(next) == "<") next = behind(next, "<", ">");
    if (next >= tokens_.size() || of(next) != "(") return 0;
    next = behind(next, "(", ")");
    return next < tokens_.size() && of(next) == ";" ? next + 1 : 0;
  }

  void calls(size_t i) {
    const size_t next = call(i);
    if (next == 0) return;
    const size_t begin = tokens_[i].begin, end = tokens_[next - 1].end;
    const std::string gone = between(begin, end);
    const auto lines = static_cast<size_t>(std::count(gone.begin(), gone.end(), '\n'));
    add("delete", "deleted", begin, end, ";" + std::string(lines, '\n'));
    const size_t after = call(next);
    if (after == 0) return;
    const size_t begin2 = tokens_[next].begin, end2 = tokens_[after - 1].end;
    const std::string second = between(begin2, end2);
    if (second == gone) return;
    add("swap", "behind the next", begin, end2, second + between(end, begin2) + gone);
  }

  void literal(const Token& t) {
    const std::string all = between(t.begin, t.end);
    const bool hex = all.starts_with("0x");
    size_t digits = 0;
    if (!hex && all.find_first_of(".ef") != std::string::npos) return;
    const uint64_t n = std::stoull(all, &digits, 0);
    const std::string suffix = all.substr(digits);
    const auto to = [&](uint64_t value) {
      add("literal", fmt::format("{} -> {}", all, value), t.begin, t.end,
          fmt::format("{}{}", value, suffix));
    };
    to(n + 1);
    if (n == 0)
      add("literal", all + " -> -1", t.begin, t.end, "(-1)");
    else
      to(n - 1);
    if (n > 1) to(2 * n);
  }

  void exchange(const Token& t) {
    static const std::map<std::string, std::string> by = {
        {"+", "-"},  {"-", "+"},   {"<", "<="},  {"<=", "<"},  {">", ">="},
        {">=", ">"}, {"==", "!="}, {"!=", "=="}, {"&&", "||"}, {"||", "&&"},
    };
    // An operator of two operands has spaces around it, brackets of templates and signs have not.
    const bool apart = text_[t.begin - 1] == ' ' && (text_[t.end] == ' ' || text_[t.end] == '\n');
    const auto found = by.find(between(t.begin, t.end));
    if (!apart || found == by.end()) return;
    add("operator", found->first + " -> " + found->second, t.begin, t.end, found->second);
  }

  const std::string& text_;
  std::vector<Token> tokens_;
  std::vector<RuleMutant> mutants_;
};

}  // namespace

std::vector<RuleMutant> mutants_of(const std::string& text) { return Mutator(text).all(); }

}  // namespace tw::test
