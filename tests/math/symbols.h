#pragma once

#include <string>

#include "tw/math/expr.h"

namespace tw::test {

inline Expr dim(int id) { return Expr::symbol(SymbolKind::dim, id); }
inline Expr pid(int id) { return Expr::symbol(SymbolKind::pid, id); }
inline Expr loop(int id) { return Expr::symbol(SymbolKind::loop, id); }

/// d0, p1, i2, ...
std::string symbol_text(Symbol s);
std::optional<Symbol> symbol_of(const std::string& text);
std::string text(const Expr& e);
Expr parsed(const std::string& text);

}  // namespace tw::test
