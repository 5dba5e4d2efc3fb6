#include "tw/math/expr.h"

#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/math/impl/arithmetic.h"

namespace tw {

struct Expr::Node {
  Kind kind;
  Symbol symbol;
  int64_t value;
  int64_t size;
  uint64_t hash;
  Expr lhs, rhs;  // null in leaves
};

namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 29);
}

// Values of the operators on constants; nullopt where the result leaves int64.
std::optional<int64_t> fold(Expr::Kind kind, int64_t a, int64_t b) {
  using enum Expr::Kind;
  switch (kind) {
    case add:
      return checked_add(a, b);
    case sub:
      return checked_sub(a, b);
    case mul:
      return checked_mul(a, b);
    case floordiv:
      if (b == -1) return checked_sub(0, a);
      return floor_div(a, b);
    case mod:
      return floor_mod(a, b);
    case min:
      return std::min(a, b);
    case max:
      return std::max(a, b);
    case constant:
    case symbol:
      break;
  }
  throw InternalError("folding a leaf of an integer expression");
}

bool is_commutative(Expr::Kind k) {
  using enum Expr::Kind;
  return k == add || k == mul || k == min || k == max;
}

// x op c where that is simpler than a node; b is the constant.
std::optional<Expr> identity(Expr::Kind kind, const Expr& a, const Expr& b) {
  using enum Expr::Kind;
  const int64_t c = b.constant();
  if (kind == add && c == 0) return a;
  if (kind == sub && c != std::numeric_limits<int64_t>::min()) return a + Expr(-c);
  if (kind == mul && c == 0) return Expr(0);
  if ((kind == mul || kind == floordiv) && c == 1) return a;
  if (kind == floordiv && c == 0) return Expr(0);
  if (kind == mod && (c == 0 || c == 1 || c == -1)) return Expr(0);
  const bool chain = kind == add || kind == mul || kind == min || kind == max;
  if (chain && a.kind() == kind && a.rhs().is_constant())
    if (auto both = fold(kind, a.rhs().constant(), c))
      return Expr::binary(kind, a.lhs(), Expr(*both));
  return std::nullopt;
}

}  // namespace

Expr::Expr(int64_t c)
    : node_(std::make_shared<Node>(Node{Kind::constant,
                                        {},
                                        c,
                                        1,
                                        mix(1, static_cast<uint64_t>(c)),
                                        Expr(nullptr),
                                        Expr(nullptr)})) {}

Expr Expr::symbol(SymbolKind kind, int id) {
  const uint64_t h = mix(mix(2, static_cast<uint64_t>(kind)), static_cast<uint64_t>(id));
  return Expr(std::make_shared<Node>(
      Node{Kind::symbol, Symbol{kind, id}, 0, 1, h, Expr(nullptr), Expr(nullptr)}));
}

Expr Expr::binary(Kind kind, const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant())
    if (auto c = fold(kind, a.constant(), b.constant())) return Expr(*c);
  if (a.is_constant() && !b.is_constant() && is_commutative(kind)) return binary(kind, b, a);
  const bool zero = a.is_constant() && a.constant() == 0;
  if (zero && (kind == Kind::floordiv || kind == Kind::mod)) return a;
  if (b.is_constant())
    if (auto e = identity(kind, a, b)) return *e;
  const uint64_t h = mix(mix(mix(3, static_cast<uint64_t>(kind)), a.hash()), b.hash());
  const int64_t size = clamp_to_int64(static_cast<int128>(a.size()) + b.size() + 1);
  return Expr(std::make_shared<Node>(Node{kind, {}, 0, size, h, a, b}));
}

Expr::Kind Expr::kind() const { return node_->kind; }
int64_t Expr::constant() const { return node_->value; }
Symbol Expr::symbol() const { return node_->symbol; }
const Expr& Expr::lhs() const { return node_->lhs; }
const Expr& Expr::rhs() const { return node_->rhs; }
int64_t Expr::size() const { return node_->size; }
uint64_t Expr::hash() const { return node_->hash; }

bool Expr::operator==(const Expr& other) const {
  if (node_ == other.node_) return true;
  const Node &a = *node_, &b = *other.node_;
  if (a.hash != b.hash || a.kind != b.kind || a.size != b.size) return false;
  if (a.kind == Kind::constant) return a.value == b.value;
  if (a.kind == Kind::symbol) return a.symbol == b.symbol;
  return a.lhs == b.lhs && a.rhs == b.rhs;
}

Expr operator+(const Expr& a, const Expr& b) { return Expr::binary(Expr::Kind::add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return Expr::binary(Expr::Kind::sub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return Expr::binary(Expr::Kind::mul, a, b); }
Expr floordiv(const Expr& a, const Expr& b) { return Expr::binary(Expr::Kind::floordiv, a, b); }
Expr mod(const Expr& a, const Expr& b) { return Expr::binary(Expr::Kind::mod, a, b); }
Expr cdiv(const Expr& a, const Expr& b) { return floordiv(a + b - 1, b); }
Expr min(const Expr& a, const Expr& b) { return Expr::binary(Expr::Kind::min, a, b); }
Expr max(const Expr& a, const Expr& b) { return Expr::binary(Expr::Kind::max, a, b); }

int64_t evaluate(const Expr& e, const SymbolValue& value) {
  if (e.kind() == Expr::Kind::constant) return e.constant();
  if (e.kind() == Expr::Kind::symbol) return value(e.symbol());
  const int64_t a = evaluate(e.lhs(), value), b = evaluate(e.rhs(), value);
  if (auto c = fold(e.kind(), a, b)) return *c;
  throw UserError(fmt::format("index arithmetic on {} and {} leaves the range of 64 bits", a, b),
                  "the sizes given are too large");
}

Expr substitute(const Expr& e, const SymbolExpr& replacement) {
  if (e.kind() == Expr::Kind::constant) return e;
  if (e.kind() == Expr::Kind::symbol) return replacement(e.symbol()).value_or(e);
  Expr a = substitute(e.lhs(), replacement), b = substitute(e.rhs(), replacement);
  if (a == e.lhs() && b == e.rhs()) return e;
  return Expr::binary(e.kind(), a, b);
}

void for_each_symbol(const Expr& e, const std::function<void(Symbol)>& visit) {
  if (e.kind() == Expr::Kind::constant) return;
  if (e.kind() == Expr::Kind::symbol) return visit(e.symbol());
  for_each_symbol(e.lhs(), visit);
  for_each_symbol(e.rhs(), visit);
}

bool mentions(const Expr& e, Symbol s) {
  bool found = false;
  for_each_symbol(e, [&](Symbol other) { found = found || other == s; });
  return found;
}

}  // namespace tw
