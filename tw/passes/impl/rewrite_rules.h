#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tw/passes/simplify.h"

namespace tw {

/// A side of a rewrite: a value (a letter), a constant, or an op on those.
struct Node {
  std::optional<Opcode> op;
  char letter = 0;    ///< a value
  double number = 0;  ///< a constant otherwise
  Opcode code = Opcode::full;
  std::vector<Node> operands;
  bool is_value() const { return letter != 0; }
  bool is_constant() const { return !op && letter == 0; }
  Number constant(DType t) const { return {!is_float(t), static_cast<int64_t>(number), number}; }
};
struct Pattern {
  Node from, to;
  std::string classes;
};
/// rewrites() read once.
std::vector<Pattern> rewrite_patterns();

using Bindings = std::map<char, ValueId>;

/// What rules may look at: the ops that define values, and types.
class RuleView {
 public:
  RuleView(Program& p, const std::map<ValueId, const Op*>& defs) : p_(p), defs_(defs) {}

  const Type& type(ValueId v) const { return p_.type(v); }
  /// The op that defines v when it is of that kind (and in this or an outer region), else null.
  const Op* def(ValueId v, Opcode code) const;
  bool matches(const Pattern& rule, const Op& op, Bindings& bound) const;
  /// Whether the op on those operands has that type.
  bool gives(Opcode code, const std::vector<ValueId>& in, const Type& type) const;

 private:
  bool matches(const Node& n, ValueId v, Bindings& bound) const;
  bool matches_operands(const Node& n, const Op& op, Bindings& bound) const;
  bool is_constant(ValueId v, const Node& n) const;

  Program& p_;
  const std::map<ValueId, const Op*>& defs_;
};

/// Rules about shapes and types, which need code. Each either does nothing, rewrites the op in
/// place and gives its own result, or gives the value that equals it.
using StructuralRule = std::optional<ValueId> (*)(const RuleView& view, Op& op);
const std::vector<StructuralRule>& structural_rules();

}  // namespace tw
