#include "tests/math/symbols.h"

namespace tw::test {

std::string symbol_text(Symbol s) {
  return std::string(1, "dpi"[static_cast<int>(s.kind)]) + std::to_string(s.id);
}

std::optional<Symbol> symbol_of(const std::string& text) {
  const size_t kind = std::string("dpi").find(text[0]);
  if (text.size() < 2 || kind == std::string::npos) return std::nullopt;
  return Symbol{static_cast<SymbolKind>(kind), std::stoi(text.substr(1))};
}

std::string text(const Expr& e) { return to_string(e, symbol_text); }
Expr parsed(const std::string& text) { return parse_expr(text, symbol_of); }

}  // namespace tw::test
