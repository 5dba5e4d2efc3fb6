#include "tw/passes/simplify.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "tw/base/error.h"
#include "tw/ir/infer.h"
#include "tw/passes/impl/rewrite_rules.h"

namespace tw {
namespace {

// How the ops of one program are looked up and rewritten in place.
class Simplifier {
 public:
  explicit Simplifier(Program& p) : p_(p), patterns_(rewrite_patterns()), view_(p, defs_) {}

  void region(Region& r) {
    for (Op& op : r.ops) {
      for (ValueId& v : op.in) v = same(v);
      for (Region& inner : op.regions) region(inner);
      if (op.out.size() != 1 || !op.regions.empty()) continue;
      while (rewrite(op)) {
      }
      defs_[op.out[0]] = &op;
    }
    for (ValueId& v : r.yields) v = same(v);
  }

 private:
  // One step; false when no rule fits, or when the op has become another value.
  bool rewrite(Op& op) {
    for (const Pattern& rule : patterns_) {
      if (rule.from.code != op.code) continue;
      Bindings bound;
      if (!view_.matches(rule, op, bound)) continue;
      if (apply(rule, op, bound)) return !replaced(op);
    }
    for (auto* rule : structural_rules()) {
      const auto value = rule(view_, op);
      if (!value) continue;
      if (*value == op.out[0]) return true;
      same_[op.out[0]] = *value;
      return false;
    }
    return false;
  }

  bool apply(const Pattern& rule, Op& op, const Bindings& bound) {
    const Type type = p_.type(op.out[0]);
    const Node& to = rule.to;
    if (to.is_value()) {
      const ValueId v = bound.at(to.letter);
      if (!(p_.type(v) == type)) return false;
      same_[op.out[0]] = v;
      return true;
    }
    if (to.is_constant()) {
      op = {Opcode::full, op.at, {}, op.out, FullAttr{to.constant(type.dtype)}, {}};
      return true;
    }
    std::vector<ValueId> in;
    for (const Node& n : to.operands) in.push_back(bound.at(n.letter));
    if (!view_.gives(to.code, in, type)) return false;
    op.code = to.code;
    op.in = in;
    return true;
  }

  bool replaced(const Op& op) const { return same_.count(op.out[0]) > 0; }
  ValueId same(ValueId v) const {
    const auto it = same_.find(v);
    return it == same_.end() ? v : it->second;
  }

  Program& p_;
  const std::vector<Pattern> patterns_;
  std::map<ValueId, const Op*> defs_;
  std::map<ValueId, ValueId> same_;
  const RuleView view_;
};

}  // namespace

void simplify(Program& p, const PassContext&) {
  const Facts facts = facts_of(p);
  walk(p, [&](Op& op) { map_exprs(op, [&](const Expr& e) { return simplify(e, facts); }); });
  Simplifier(p).region(p.body);
  canonicalize(p);
}

}  // namespace tw
