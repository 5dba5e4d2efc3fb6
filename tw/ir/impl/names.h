#pragma once

#include <fmt/format.h>
#include <map>
#include <set>

#include "tw/ir/impl/cursor.h"
#include "tw/ir/print.h"

namespace tw {

/// What the names of a text stand for so far, and the program that they are names of.
class Names {
 protected:
  // ---- expressions

  std::optional<Symbol> symbol(const std::string& s) const {
    if (auto d = dims_.find(s); d != dims_.end()) return Symbol{SymbolKind::dim, d->second};
    if (!is_symbol_word(s)) return std::nullopt;
    const bool pid = s[0] == 'p';
    const std::string digits = s.substr(pid ? 3 : 1);
    const int id = digits.size() > 7 ? -1 : std::stoi(digits);
    if (pid ? id < 0 || static_cast<size_t>(id) >= p_.grid.size() : enclosing_.count(id) == 0)
      return std::nullopt;
    return Symbol{pid ? SymbolKind::pid : SymbolKind::loop, id};
  }
  Expr expr(Cursor& c, std::initializer_list<std::string_view> stops) {
    return c.expr(stops, [this](const std::string& s) { return symbol(s); });
  }
  // A list that `close` ends; the opening bracket has been read.
  std::vector<Expr> exprs(Cursor& c, std::string_view close) {
    std::vector<Expr> list;
    if (c.take(close)) return list;
    do {
      list.push_back(expr(c, {",", close}));
    } while (c.take(","));
    c.expect(close);
    return list;
  }

  // `at`, where given, gets the values that stand in place of origins.
  View view(Cursor& c, std::vector<ValueId>* at = nullptr) {
    const std::string name = c.identifier("a parameter");
    const auto param = params_.find(name);
    if (param == params_.end()) c.fail(fmt::format("there is no parameter '{}'", name));
    View v;
    v.param = param->second;
    if (c.take("[")) v.origin = exprs(c, "]");
    c.expect("{");
    if (c.take("}")) return v;
    do {
      const bool fixed = c.take("[");
      if (!fixed) v.axes.push_back(static_cast<int>(v.origin.size()));
      if (!fixed && at != nullptr) {
        at->push_back(use(c));
        v.origin.emplace_back(0);
        continue;
      }
      v.origin.push_back(fixed ? expr(c, {"]"}) : expr(c, {",", "}"}));
      if (fixed) c.expect("]");
    } while (c.take(","));
    c.expect("}");
    return v;
  }

  // ---- values

  ValueId use(Cursor& c) {
    const std::string l = c.label();
    const auto it = visible_.find(l);
    if (it == visible_.end())
      c.fail(fmt::format("%{} is used where its definition does not reach", l));
    return it->second;
  }
  std::vector<ValueId> uses(Cursor& c) {
    std::vector<ValueId> list;
    do {
      list.push_back(use(c));
    } while (c.take(","));
    return list;
  }
  ValueId define(const std::string& label, const Type& t, SourceLoc at, const Cursor& c) {
    if (!defined_.insert(label).second) c.fail(fmt::format("%{} is defined twice", label));
    const size_t dot = label.find('.');
    const ValueId v = p_.new_value(t, at, dot == std::string::npos ? "" : label.substr(0, dot));
    visible_[label] = v;
    return v;
  }

  Program p_;
  std::map<std::string, int> dims_, params_;
  std::map<std::string, ValueId> visible_;
  std::set<std::string> defined_;
  std::set<int> enclosing_;  ///< loops whose counters may be used
};

}  // namespace tw
