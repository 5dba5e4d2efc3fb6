#include "tw/limit/impl/known.h"

#include <algorithm>

#include "tw/limit/impl/elements.h"

namespace tw {

/// Modulo 2^64, as i64 wraps.
static int64_t wrapped(uint64_t x) { return static_cast<int64_t>(x); }

std::optional<CompareKind> comparison(Opcode code) {
  if (code == Opcode::eq) return CompareKind::eq;
  if (code == Opcode::ne) return CompareKind::ne;
  if (code == Opcode::lt) return CompareKind::lt;
  if (code == Opcode::le) return CompareKind::le;
  return std::nullopt;
}

std::optional<int64_t> combined(Opcode code, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  if (code == Opcode::add) return wrapped(x + y);
  if (code == Opcode::sub) return wrapped(x - y);
  if (code == Opcode::mul) return wrapped(x * y);
  if (code == Opcode::div) return b == 0 ? 0 : b == -1 ? wrapped(0 - x) : a / b;
  if (code == Opcode::rem) return b == 0 || b == -1 ? 0 : a % b;
  if (code == Opcode::min) return std::min(a, b);
  if (code == Opcode::max) return std::max(a, b);
  if (code == Opcode::and_) return a & b;
  if (code == Opcode::or_) return a | b;
  if (code == Opcode::xor_) return a ^ b;
  if (const auto kind = comparison(code)) return holds(*kind, a, b);
  return std::nullopt;
}

std::vector<ValueId> deciding(const Op& op) {
  if (op.code == Opcode::where) return {op.in[0]};
  if (op.code != Opcode::gather && op.code != Opcode::scatter && op.code != Opcode::atomic)
    return {};
  const PlaceOperands operands = place_operands(op);
  std::vector<ValueId> all = operands.at;
  if (operands.mask) all.push_back(*operands.mask);
  return all;
}

namespace {

/// Gives each element of its operand, maybe elsewhere.
bool only_moves(Opcode code) {
  return code == Opcode::reshape || code == Opcode::transpose || code == Opcode::slice ||
         code == Opcode::broadcast;
}

bool is_whole(DType t) { return !is_float(t) && (t == b1 || bits(t) >= 32); }

}  // namespace

Known::Known(const Program& p)
    : p_(p),
      follows_(p.values.size()),
      constant_(p.values.size()),
      asked_(p.values.size()),
      givers_(p.values.size(), nullptr),
      elements_(p.values.size()) {
  walk(p, [this](const Op& op) { mark(op); });
  walk(p, [this](const Op& op) {
    for (ValueId v : deciding(op)) ask(v);
  });
}

bool Known::computable(const Op& op) const {
  if (op.out.size() != 1 || !op.regions.empty() || !is_whole(p_.type(op.out[0]).dtype))
    return false;
  if (op.code == Opcode::iota || op.code == Opcode::index) return true;
  if (op.code == Opcode::full) return op.as<FullAttr>().value.integral;
  if (op.in.empty()) return false;
  if (!std::ranges::all_of(op.in, [this](ValueId v) { return follows(v); })) return false;
  if (op.code == Opcode::not_) return p_.type(op.in[0]).dtype == b1;
  if (op.code == Opcode::cast && p_.type(op.out[0]).dtype == b1) return false;
  return only_moves(op.code) || op.code == Opcode::cast || combined(op.code, 0, 0).has_value();
}

void Known::mark(const Op& op) {
  for (ValueId v : op.out) givers_[v] = &op;
  if (computable(op)) follows_[op.out[0]] = true;
  const bool moves = only_moves(op.code) || op.code == Opcode::cast;
  if (op.code == Opcode::full || (moves && constant(op.in[0]))) constant_[op.out[0]] = true;
}

void Known::ask(ValueId v) {
  if (!follows(v) || asked_[v]) return;
  asked_[v] = true;
  for (ValueId in : givers_[v]->in) ask(in);
}

void Known::compute(const Op& op, const Sizes& sizes, const Coordinates& at) {
  if (op.out.size() == 1 && asked_[op.out[0]]) elements_[op.out[0]] = result(op, sizes, at);
}

std::vector<int64_t> Known::taken(ValueId from, const Extents& shape) const {
  const Extents& small = p_.type(from).shape;
  if (small == shape) return elements_[from];
  std::vector<int64_t> all(static_cast<size_t>(count(shape)));
  stretching(shape, small).for_each([&](size_t i, size_t x) { all[i] = elements_[from][x]; });
  return all;
}

static Placement movement(const Program& p, const Op& op) {
  const Extents& from = p.type(op.in[0]).shape;
  if (op.code == Opcode::transpose) return transposing(from, op.as<PermAttr>().perm);
  return slicing(from, op.as<SliceAttr>().start, p.type(op.out[0]).shape);
}

std::vector<int64_t> Known::result(const Op& op, const Sizes& sizes, const Coordinates& at) const {
  const Extents& shape = p_.type(op.out[0]).shape;
  std::vector<int64_t> all(static_cast<size_t>(count(shape)));
  if (op.code == Opcode::full) {
    std::ranges::fill(all, op.as<FullAttr>().value.i);
  } else if (op.code == Opcode::index) {
    std::ranges::fill(all, sizes.value(op.as<IndexAttr>().value, at));
  } else if (op.code == Opcode::iota) {
    const auto axis = static_cast<size_t>(op.as<AxisAttr>().axis);
    const int64_t stride = row_major(shape)[axis];
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i) / stride % shape[axis];
  } else if (op.code == Opcode::reshape || op.code == Opcode::cast) {
    return elements_[op.in[0]];
  } else if (op.code == Opcode::transpose || op.code == Opcode::slice) {
    movement(p_, op).for_each([&](size_t i, size_t x) { all[i] = elements_[op.in[0]][x]; });
  } else if (op.code == Opcode::not_) {
    for (size_t i = 0; i < all.size(); ++i) all[i] = elements_[op.in[0]][i] == 0;
  } else if (op.in.size() == 1) {
    return taken(op.in[0], shape);
  } else {
    const std::vector<int64_t> a = taken(op.in[0], shape), b = taken(op.in[1], shape);
    for (size_t i = 0; i < all.size(); ++i) all[i] = *combined(op.code, a[i], b[i]);
  }
  return all;
}

}  // namespace tw
