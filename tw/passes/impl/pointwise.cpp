#include "tw/passes/impl/pointwise.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace tw {
namespace {

/// What a pass needs to know of an op that works element by element.
enum class Kind : uint8_t {
  no,           ///< not pointwise
  leaf,         ///< has no operands
  elementwise,  ///< keeps every coordinate
  moves_axes    ///< each element is one of the operand's, elsewhere
};
/// When an element of the result is zero.
enum class Zero : uint8_t { never, constant, load, first, both, factor, arms };

struct Rule {
  Kind kind;
  Zero zero;
};

Rule rule_of(Opcode code) {
  switch (code) {
    case Opcode::full:
      return {Kind::leaf, Zero::constant};
    case Opcode::load:
      return {Kind::leaf, Zero::load};
    case Opcode::iota:
    case Opcode::index:
      return {Kind::leaf, Zero::never};
    case Opcode::cast:
    case Opcode::neg:
    case Opcode::abs:
    case Opcode::sqrt:
    case Opcode::sin:
    case Opcode::tanh:
    case Opcode::erf:
    case Opcode::tanh_fast:
    case Opcode::erf_fast:
    case Opcode::floor:
    case Opcode::ceil:
    case Opcode::round:
      return {Kind::elementwise, Zero::first};
    case Opcode::bitcast:
    case Opcode::lookup:
    case Opcode::philox:
    case Opcode::not_:
    case Opcode::rsqrt:
    case Opcode::exp:
    case Opcode::exp2:
    case Opcode::log:
    case Opcode::cos:
    case Opcode::div:
    case Opcode::rem:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
    case Opcode::shl:
    case Opcode::shr:
    case Opcode::eq:
    case Opcode::ne:
    case Opcode::lt:
    case Opcode::le:
      return {Kind::elementwise, Zero::never};
    case Opcode::add:
    case Opcode::sub:
    case Opcode::min:
    case Opcode::max:
    case Opcode::min_num:
    case Opcode::max_num:
      return {Kind::elementwise, Zero::both};
    case Opcode::mul:
      return {Kind::elementwise, Zero::factor};
    case Opcode::where:
      return {Kind::elementwise, Zero::arms};
    case Opcode::reshape:
    case Opcode::transpose:
    case Opcode::broadcast:
      return {Kind::moves_axes, Zero::first};
    case Opcode::store:
    case Opcode::slice:
    case Opcode::gather:
    case Opcode::scatter:
    case Opcode::atomic:
    case Opcode::assert_:
    case Opcode::print:
    case Opcode::reduce:
    case Opcode::scan:
    case Opcode::top_k:
    case Opcode::dot:
    case Opcode::for_:
    case Opcode::while_:
    case Opcode::if_:
    case Opcode::par:
    case Opcode::keep:
    case Opcode::contract:
      return {Kind::no, Zero::never};
  }
  return {Kind::no, Zero::never};
}

/// The axis of `from` that a reshape makes axis `axis` of `to`, when it only adds or drops axes of
/// extent 1.
std::optional<int> axis_before_reshape(const Extents& from, const Extents& to, int axis) {
  size_t i = 0;
  for (size_t o = 0; o < to.size(); ++o) {
    if (to[o] == 1) continue;
    while (i < from.size() && from[i] == 1) ++i;
    if (i == from.size() || from[i] != to[o]) return std::nullopt;
    if (static_cast<int>(o) == axis) return static_cast<int>(i);
    ++i;
  }
  return std::nullopt;
}

bool is_zero(const Number& n) { return n.as_double() == 0; }

/// One axis of a tile, followed to the loads that it comes from. An operand of extent 1 is
/// stretched along it, and has no position there, when the tile is longer.
class AxisWalk {
 public:
  AxisWalk(const Program& p, const Slice& s, int64_t extent) : p_(p), s_(s), extent_(extent) {}

  bool spans(ValueId v, int axis, std::vector<Span>& out) {
    if (p_.type(v).shape[axis] != extent_ || !spanned_.insert({v, axis}).second) return true;
    const Op* op = s_.defining(v);
    if (!op) return false;
    if (op->code == Opcode::iota) return op->as<AxisAttr>().axis != axis;
    if (op->code == Opcode::load) {
      const View& view = op->as<ViewAttr>().view;
      const int at = view.axes[axis];
      const Span span{view.origin[at], p_.params[view.param].dims[at]};
      if (std::find(out.begin(), out.end(), span) == out.end()) out.push_back(span);
      return true;
    }
    const std::optional<int> before = operand_axis(p_, *op, axis);
    if (!before) return false;
    return std::all_of(op->in.begin(), op->in.end(),
                       [&](ValueId in) { return spans(in, *before, out); });
  }

  bool zero_outside(ValueId v, int axis) {
    const auto [it, added] = zero_.emplace(std::pair(v, axis), false);
    if (added) it->second = find_zero(v, axis);
    return it->second;
  }

 private:
  bool find_zero(ValueId v, int axis) {
    const Op* op = s_.defining(v);
    if (!op) return false;
    const std::optional<int> before = operand_axis(p_, *op, axis);
    const auto zero = [&](size_t k) { return before && zero_outside(op->in[k], *before); };
    const auto finite = [&](size_t k) { return before && finite_outside(op->in[k], *before); };
    switch (rule_of(op->code).zero) {
      case Zero::never:
        return false;
      case Zero::constant:
        return is_zero(op->as<FullAttr>().value);
      case Zero::load:
        return p_.type(v).shape[axis] == extent_ && is_zero(op->as<ViewAttr>().pad);
      case Zero::first:
        return zero(0);
      case Zero::both:
        return zero(0) && zero(1);
      case Zero::factor:
        return (zero(0) && finite(1)) || (finite(0) && zero(1));
      case Zero::arms:
        return zero(1) && zero(2);
    }
    return false;
  }

  bool finite_outside(ValueId v, int axis) {
    const Op* op = s_.defining(v);
    if (op && op->code == Opcode::full) return std::isfinite(op->as<FullAttr>().value.as_double());
    return zero_outside(v, axis);
  }

  const Program& p_;
  const Slice& s_;
  int64_t extent_;
  std::set<std::pair<ValueId, int>> spanned_;  ///< axes of values that were followed
  std::map<std::pair<ValueId, int>, bool> zero_;
};

}  // namespace

Definitions::Definitions(const Program& p) : ops_(p.values.size(), nullptr) { record(p.body); }

void Definitions::record(const Region& r) {
  for (const Op& op : r.ops) {
    for (const ValueId v : op.out) ops_[v] = &op;
    for (const Region& inner : op.regions) record(inner);
  }
}

bool is_pointwise(const Program& p, const Op& op) {
  return rule_of(op.code).kind != Kind::no && effect(p, op) == Effect::pure;
}

std::optional<int> operand_axis(const Program& p, const Op& op, int axis) {
  if (op.code == Opcode::transpose) return op.as<PermAttr>().perm[axis];
  if (op.code == Opcode::reshape)
    return axis_before_reshape(p.type(op.in[0]).shape, p.type(op.out[0]).shape, axis);
  return axis;
}

bool keeps_coordinates(const Op& op) { return rule_of(op.code).kind == Kind::elementwise; }

std::optional<ValueId> Slice::add(ValueId v) {
  if (const auto known = copies_.find(v); known != copies_.end()) return known->second;
  const Op* op = definitions_.of(v);
  if (!op || !is_pointwise(p_, *op)) return std::nullopt;
  Op copy = *op;
  for (ValueId& in : copy.in) {
    const std::optional<ValueId> operand = add(in);
    if (!operand) return std::nullopt;
    in = *operand;
  }
  const Value old = p_.values[v];
  copy.out[0] = copies_[v] = p_.new_value(old.type, old.at, old.name);
  push(std::move(copy));
  return copies_[v];
}

void Slice::push(Op op) {
  for (const ValueId v : op.out) made_by_[v] = ops_.size();
  ops_.push_back(std::move(op));
}

const Op* Slice::defining(ValueId v) const {
  const auto at = made_by_.find(v);
  return at == made_by_.end() ? nullptr : &ops_[at->second];
}

std::optional<std::vector<Span>> spans_along(const Program& p, const Slice& s, ValueId v,
                                             int axis) {
  std::vector<Span> spans;
  if (!AxisWalk(p, s, p.type(v).shape[axis]).spans(v, axis, spans)) return std::nullopt;
  return spans;
}

bool zero_outside(const Program& p, const Slice& s, ValueId v, int axis) {
  return AxisWalk(p, s, p.type(v).shape[axis]).zero_outside(v, axis);
}

}  // namespace tw
