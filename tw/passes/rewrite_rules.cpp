#include "tw/passes/impl/rewrite_rules.h"

#include <cctype>
#include <charconv>
#include <cmath>

#include "tw/base/error.h"
#include "tw/ir/infer.h"

namespace tw {
namespace {

// Sorted by root op. Each right side is smaller, or the same op with fewer operations below it:
// that is why rewriting ends. Floats: x*1, x/1, x-0 and x+(-0) keep NaN, infinities and -0; x+0
// does not (-0 + 0 is +0), nor do x*0 and x-x.
constexpr Rewrite kRewrites[] = {
    {"(neg (neg x))", "x", "fsu"},
    {"(abs (abs x))", "(abs x)", "fsu"},
    {"(abs (neg x))", "(abs x)", "fs"},
    {"(not (not x))", "x", "sub"},
    {"(not (eq x y))", "(ne x y)", "b"},
    {"(not (ne x y))", "(eq x y)", "b"},
    {"(add x 0)", "x", "su"},
    {"(add x -0)", "x", "f"},
    {"(add x (neg y))", "(sub x y)", "fsu"},
    {"(sub x 0)", "x", "fsu"},
    {"(sub x x)", "0", "su"},
    {"(sub 0 x)", "(neg x)", "su"},
    {"(sub x (neg y))", "(add x y)", "fsu"},
    {"(mul x 1)", "x", "fsu"},
    {"(mul x 0)", "0", "su"},
    {"(mul x -1)", "(neg x)", "fs"},
    {"(mul (neg x) (neg y))", "(mul x y)", "fsu"},
    {"(div x 1)", "x", "fsu"},
    {"(rem x 1)", "0", "su"},
    {"(min x x)", "x", "fsu"},
    {"(max x x)", "x", "fsu"},
    {"(min_num x x)", "x", "fsu"},
    {"(max_num x x)", "x", "fsu"},
    {"(and x x)", "x", "sub"},
    {"(and x 0)", "0", "sub"},
    {"(and x 1)", "x", "b"},
    {"(or x x)", "x", "sub"},
    {"(or x 0)", "x", "sub"},
    {"(or x 1)", "1", "b"},
    {"(xor x x)", "0", "sub"},
    {"(xor x 0)", "x", "sub"},
    {"(xor x 1)", "(not x)", "b"},
    {"(shl x 0)", "x", "su"},
    {"(shr x 0)", "x", "su"},
    {"(where 1 x y)", "x", "fsub"},
    {"(where 0 x y)", "y", "fsub"},
    {"(where m x x)", "x", "fsub"},
    {"(where (not m) x y)", "(where m y x)", "fsub"},
};

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  Node node() {
    Node n;
    if (take('(')) {
      n.code = opcode(word());
      n.op = n.code;
      while (!take(')')) n.operands.push_back(node());
      return n;
    }
    const std::string w = word();
    if (std::isalpha(static_cast<unsigned char>(w[0]))) {
      n.letter = w[0];
      return n;
    }
    // from_chars reads "-0" as minus zero, which is not "0".
    std::from_chars(w.data(), w.data() + w.size(), n.number);
    return n;
  }

 private:
  bool take(char c) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string word() {
    const size_t end = std::min(text_.find_first_of(" ()", at_), text_.size());
    std::string w = text_.substr(at_, end - at_);
    at_ = end;
    if (w.empty()) throw InternalError("a rewrite ends too soon: " + text_);
    return w;
  }
  Opcode opcode(const std::string& name) const {
    for (int k = 0; k < kOpcodeCount; ++k)
      if (name == info(static_cast<Opcode>(k)).name) return static_cast<Opcode>(k);
    throw InternalError("a rewrite names no op: " + text_);
  }

  const std::string text_;
  size_t at_ = 0;
};

char class_of(DType t) {
  switch (info(t).cls) {
    case DTypeClass::boolean:
      return 'b';
    case DTypeClass::signed_int:
      return 's';
    case DTypeClass::unsigned_int:
      return 'u';
    case DTypeClass::floating:
      return 'f';
  }
  return '?';
}

bool commutes(Opcode code) {
  constexpr Opcode kCodes[] = {Opcode::add,  Opcode::mul,     Opcode::min,
                               Opcode::max,  Opcode::min_num, Opcode::max_num,
                               Opcode::and_, Opcode::or_,     Opcode::xor_};
  return std::find(std::begin(kCodes), std::end(kCodes), code) != std::end(kCodes);
}

}  // namespace

std::span<const Rewrite> rewrites() { return kRewrites; }

std::vector<Pattern> rewrite_patterns() {
  std::vector<Pattern> all;
  for (const Rewrite& r : kRewrites)
    all.push_back({Reader(r.from).node(), Reader(r.to).node(), r.classes});
  return all;
}

const Op* RuleView::def(ValueId v, Opcode code) const {
  const auto it = defs_.find(v);
  return it != defs_.end() && it->second->code == code ? it->second : nullptr;
}

bool RuleView::matches(const Pattern& rule, const Op& op, Bindings& bound) const {
  if (rule.classes.find(class_of(type(op.out[0]).dtype)) == std::string::npos) return false;
  return matches_operands(rule.from, op, bound);
}

bool RuleView::matches_operands(const Node& n, const Op& op, Bindings& bound) const {
  const auto in_order = [&](bool swapped) {
    Bindings trial = bound;
    for (size_t k = 0; k < n.operands.size(); ++k)
      if (!matches(n.operands[swapped ? 1 - k : k], op.in[k], trial)) return false;
    bound = trial;
    return true;
  };
  return in_order(false) || (commutes(n.code) && in_order(true));
}

bool RuleView::matches(const Node& n, ValueId v, Bindings& bound) const {
  if (n.is_value()) {
    const auto [it, added] = bound.emplace(n.letter, v);
    return added || it->second == v;
  }
  if (n.is_constant()) return is_constant(v, n);
  const Op* op = def(v, n.code);
  return op != nullptr && matches_operands(n, *op, bound);
}

bool RuleView::is_constant(ValueId v, const Node& n) const {
  const Op* full = def(v, Opcode::full);
  return full != nullptr && full->as<FullAttr>().value == n.constant(type(v).dtype);
}

bool RuleView::gives(Opcode code, const std::vector<ValueId>& in, const Type& want) const {
  try {
    switch (in.size()) {
      case 1:
        return infer_unary(code, type(in[0]), {}) == want;
      case 2:
        return infer_binary(code, type(in[0]), type(in[1]), {}) == want;
      default:
        return infer_where(type(in[0]), type(in[1]), type(in[2]), {}) == want;
    }
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace tw
