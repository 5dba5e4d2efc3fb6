#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tw {

/// What an integer expression may depend on.
///   dim   a dimension of a tensor, known at launch; id indexes Program::dims
///   pid   a coordinate of the program instance; id is the grid axis
///   loop  a loop counter; id is the loop's number, unique in its program
enum class SymbolKind : uint8_t { dim, pid, loop };
struct Symbol {
  SymbolKind kind = SymbolKind::dim;
  int id = 0;
  auto operator<=>(const Symbol&) const = default;
};

/// An immutable integer expression: mathematical integers (int64 without overflow), floor division
/// and floor modulus. Division or modulus by 0 gives 0. Cheap to copy (a shared node). Building
/// applies local identities only (constant folding, x+0, x*1, x*0, 0/x, (x+c1)+c2, x-c as x+(-c),
/// constants to the right); simplify() does the rest. A fold that would overflow is not done.
class Expr {
 public:
  enum class Kind : uint8_t { constant, symbol, add, sub, mul, floordiv, mod, min, max };

  Expr() : Expr(int64_t{0}) {}
  Expr(int64_t c);
  Expr(int c) : Expr(static_cast<int64_t>(c)) {}
  static Expr symbol(SymbolKind kind, int id);
  static Expr symbol(Symbol s) { return symbol(s.kind, s.id); }
  static Expr binary(Kind kind, const Expr& a, const Expr& b);

  Kind kind() const;
  bool is_constant() const { return kind() == Kind::constant; }
  int64_t constant() const;  ///< kind() == constant
  Symbol symbol() const;     ///< kind() == symbol
  const Expr& lhs() const;   ///< other kinds
  const Expr& rhs() const;

  int64_t size() const;                      ///< nodes of the tree (saturates)
  uint64_t hash() const;                     ///< structural
  bool operator==(const Expr& other) const;  ///< structural

 private:
  struct Node;
  explicit Expr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr floordiv(const Expr& a, const Expr& b);
Expr mod(const Expr& a, const Expr& b);
Expr cdiv(const Expr& a, const Expr& b);  ///< floordiv(a + b - 1, b)
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);

using SymbolName = std::function<std::string(Symbol)>;
using SymbolValue = std::function<int64_t(Symbol)>;
using SymbolExpr = std::function<std::optional<Expr>(Symbol)>;

/// Text with C precedence, e.g. "pid0*64 + floordiv(M, 2)", "min(a, b)", "cdiv(K, 64)" where the
/// form is recognised.
std::string to_string(const Expr& e, const SymbolName& symbol_name);
/// Parses what to_string writes. `resolve` gives the symbol of a name; throws UserError with the
/// offset on bad text.
Expr parse_expr(const std::string& text,
                const std::function<std::optional<Symbol>(const std::string&)>& resolve);

/// Throws UserError where a step leaves the range of int64.
int64_t evaluate(const Expr& e, const SymbolValue& value);
Expr substitute(const Expr& e, const SymbolExpr& replacement);
void for_each_symbol(const Expr& e, const std::function<void(Symbol)>& visit);
bool mentions(const Expr& e, Symbol s);

}  // namespace tw
