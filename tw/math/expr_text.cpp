#include <cctype>
#include <charconv>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/math/expr.h"

namespace tw {
namespace {

using Kind = Expr::Kind;

enum Precedence { kSum, kProduct, kUnary };

bool is_negation(const Expr& e) {
  return e.kind() == Kind::sub && e.lhs().is_constant() && e.lhs().constant() == 0;
}

// The x of an e that was built as cdiv(x, b).
std::optional<Expr> cdiv_numerator(const Expr& e) {
  if (e.kind() != Kind::floordiv || e.lhs().kind() != Kind::add) return std::nullopt;
  const Expr& sum = e.lhs();
  if (sum.lhs().kind() == Kind::add && cdiv(sum.lhs().lhs(), e.rhs()) == e) return sum.lhs().lhs();
  if (cdiv(sum.lhs(), e.rhs()) == e) return sum.lhs();
  return std::nullopt;
}

class Printer {
 public:
  explicit Printer(const SymbolName& symbol_name) : name_(symbol_name) {}

  std::string print(const Expr& e, Precedence outer) const {
    switch (e.kind()) {
      case Kind::constant:
        return fmt::format("{}", e.constant());
      case Kind::symbol:
        return name_(e.symbol());
      case Kind::add:
      case Kind::sub:
        if (is_negation(e)) return fmt::format("-{}", print(e.rhs(), kUnary));
        return parenthesised(sum(e), outer > kSum);
      case Kind::mul:
        return parenthesised(fmt::format("{}*{}", print(e.lhs(), kProduct), print(e.rhs(), kUnary)),
                             outer > kProduct);
      case Kind::floordiv:
        if (auto x = cdiv_numerator(e)) return call("cdiv", *x, e.rhs());
        return call("floordiv", e.lhs(), e.rhs());
      case Kind::mod:
        return call("mod", e.lhs(), e.rhs());
      case Kind::min:
        return call("min", e.lhs(), e.rhs());
      case Kind::max:
        return call("max", e.lhs(), e.rhs());
    }
    return "";
  }

 private:
  std::string sum(const Expr& e) const {
    const Expr& b = e.rhs();
    const bool shown_negated = e.kind() == Kind::add && b.is_constant() && b.constant() < 0 &&
                               b.constant() != std::numeric_limits<int64_t>::min();
    if (shown_negated) return fmt::format("{} - {}", print(e.lhs(), kSum), -b.constant());
    return fmt::format("{} {} {}", print(e.lhs(), kSum), e.kind() == Kind::add ? "+" : "-",
                       print(b, kProduct));
  }
  std::string call(const char* function, const Expr& a, const Expr& b) const {
    return fmt::format("{}({}, {})", function, print(a, kSum), print(b, kSum));
  }
  static std::string parenthesised(std::string text, bool yes) {
    return yes ? fmt::format("({})", text) : text;
  }

  const SymbolName& name_;
};

// sum     := product (('+' | '-') product)*
// product := factor ('*' factor)*
// factor  := '-' factor | integer | name | function '(' sum ',' sum ')' | '(' sum ')'
class Parser {
 public:
  using Resolve = std::function<std::optional<Symbol>(const std::string&)>;
  Parser(const std::string& text, const Resolve& resolve) : text_(text), resolve_(resolve) {}

  Expr parse() {
    Expr e = sum();
    skip_space();
    if (at_ != text_.size()) fail("trailing text");
    return e;
  }

 private:
  Expr sum() {
    Expr e = product();
    for (;;) {
      if (take('+'))
        e = e + product();
      else if (take('-'))
        e = e - product();
      else
        return e;
    }
  }

  Expr product() {
    Expr e = factor();
    while (take('*')) e = e * factor();
    return e;
  }

  Expr factor() {
    if (next_is_integer()) return integer();
    if (take('-')) return Expr(0) - factor();
    if (take('(')) {
      Expr e = sum();
      expect(')');
      return e;
    }
    const size_t start = at_;
    const std::string name = identifier();
    if (name.empty()) fail("an integer, a name or '(' is missing");
    if (take('(')) return call(name, start);
    if (auto s = resolve_(name)) return Expr::symbol(s->kind, s->id);
    at_ = start;
    fail(fmt::format("unknown name '{}'", name));
  }

  Expr call(const std::string& function, size_t start) {
    struct Function {
      const char* name;
      Expr (*build)(const Expr&, const Expr&);
    };
    constexpr Function functions[] = {
        {"floordiv", floordiv}, {"mod", mod}, {"cdiv", cdiv}, {"min", tw::min}, {"max", tw::max}};
    for (const Function& f : functions) {
      if (function != f.name) continue;
      Expr a = sum();
      expect(',');
      Expr b = sum();
      expect(')');
      return f.build(a, b);
    }
    at_ = start;
    fail(fmt::format("unknown function '{}'", function),
         "there are floordiv, mod, cdiv, min and max");
  }

  bool next_is_integer() {
    skip_space();
    const size_t digit = at_ + (at_ < text_.size() && text_[at_] == '-' ? 1 : 0);
    return digit < text_.size() && std::isdigit(static_cast<unsigned char>(text_[digit]));
  }

  Expr integer() {
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("the integer does not fit in 64 bits");
    at_ += static_cast<size_t>(end - begin);
    return Expr(value);
  }

  std::string identifier() {
    skip_space();
    const size_t begin = at_;
    auto in_name = [&](char c) {
      return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '%' || c == '.' ||
             (at_ > begin && std::isdigit(static_cast<unsigned char>(c)));
    };
    while (at_ < text_.size() && in_name(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}' is missing", c));
  }
  [[noreturn]] void fail(const std::string& what, const std::string& hint = "") const {
    throw UserError(fmt::format("{} at offset {} of the integer expression '{}'", what, at_, text_),
                    hint);
  }

  const std::string& text_;
  const Resolve& resolve_;
  size_t at_ = 0;
};

}  // namespace

std::string to_string(const Expr& e, const SymbolName& symbol_name) {
  return Printer(symbol_name).print(e, kSum);
}

Expr parse_expr(const std::string& text,
                const std::function<std::optional<Symbol>(const std::string&)>& resolve) {
  return Parser(text, resolve).parse();
}

}  // namespace tw
