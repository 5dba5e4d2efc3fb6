#include <algorithm>
#include <cmath>

#include "tw/ir/infer.h"
#include "tw/passes/impl/rewrite_rules.h"

namespace tw {
namespace {

using Result = std::optional<ValueId>;

// Every value of `from` is a value of `to`.
bool embeds(DType from, DType to) {
  if (from == b1 || to == b1) return false;
  const DTypeInfo& a = info(from);
  const DTypeInfo& b = info(to);
  if (is_float(from))
    return is_float(to) && b.mantissa_bits >= a.mantissa_bits && b.exponent_bits >= a.exponent_bits;
  const int64_t magnitude = bits(from) - (is_signed_int(from) ? 1 : 0);
  if (to == e8m0) return false;  // has no 0
  if (is_float(to)) return magnitude <= b.mantissa_bits + 1 && b.exponent_bits >= 5;
  if (is_signed_int(from) && is_unsigned_int(to)) return false;
  return magnitude <= bits(to) - (is_signed_int(to) ? 1 : 0);
}

bool is_plain(const CastAttr& a) { return a.rounding == Rounding::RN && !a.saturate; }

// cast (cast x) = cast x when the inner one loses nothing. An integer that goes through a float to
// an integer is clamped, not wrapped, so that stays.
Result cast_of_cast(const RuleView& view, Op& op) {
  if (op.code != Opcode::cast) return std::nullopt;
  const DType to = view.type(op.out[0]).dtype;
  const DType middle = view.type(op.in[0]).dtype;
  if (to == middle && is_plain(op.as<CastAttr>())) return op.in[0];
  const Op* inner = view.def(op.in[0], Opcode::cast);
  if (inner == nullptr) return std::nullopt;
  const DType from = view.type(inner->in[0]).dtype;
  if (!embeds(from, middle)) return std::nullopt;
  const bool through_float = is_int(from) && is_float(middle);
  if (through_float && (!is_float(to) || !is_plain(op.as<CastAttr>()))) return std::nullopt;
  op.in[0] = inner->in[0];
  return op.out[0];
}

Result bitcast_of_bitcast(const RuleView& view, Op& op) {
  if (op.code != Opcode::bitcast) return std::nullopt;
  if (view.type(op.in[0]) == view.type(op.out[0])) return op.in[0];
  const Op* inner = view.def(op.in[0], Opcode::bitcast);
  if (inner == nullptr) return std::nullopt;
  op.in[0] = inner->in[0];
  return op.out[0];
}

// A move of the elements of a constant tile, or of what such a move made, or none at all.
Result move_of_move(const RuleView& view, Op& op) {
  if (op.code != Opcode::reshape && op.code != Opcode::broadcast) return std::nullopt;
  if (view.type(op.in[0]) == view.type(op.out[0])) return op.in[0];
  const Op* inner = view.def(op.in[0], op.code);
  if (inner == nullptr) return std::nullopt;
  op.in[0] = inner->in[0];
  return op.out[0];
}

Result move_of_full(const RuleView& view, Op& op) {
  if (op.code != Opcode::reshape && op.code != Opcode::broadcast && op.code != Opcode::transpose)
    return std::nullopt;
  const Op* full = view.def(op.in[0], Opcode::full);
  if (full == nullptr) return std::nullopt;
  op = {Opcode::full, op.at, {}, op.out, full->attr, {}};
  return op.out[0];
}

Result transpose_of_transpose(const RuleView& view, Op& op) {
  if (op.code != Opcode::transpose) return std::nullopt;
  std::vector<int>& perm = op.as<PermAttr>().perm;
  if (std::is_sorted(perm.begin(), perm.end())) return op.in[0];
  const Op* inner = view.def(op.in[0], Opcode::transpose);
  if (inner == nullptr) return std::nullopt;
  for (int& axis : perm) axis = inner->as<PermAttr>().perm[static_cast<size_t>(axis)];
  op.in[0] = inner->in[0];
  return op.out[0];
}

// Operands of elementwise ops stretch by themselves.
Result broadcast_operand(const RuleView& view, Op& op) {
  if (!is_elementwise(op.code) || op.in.size() < 2) return std::nullopt;
  for (ValueId& v : op.in) {
    const Op* broadcast = view.def(v, Opcode::broadcast);
    if (broadcast == nullptr) continue;
    std::vector<ValueId> in = op.in;
    std::replace(in.begin(), in.end(), v, broadcast->in[0]);
    if (!view.gives(op.code, in, view.type(op.out[0]))) continue;
    op.in = in;
    return op.out[0];
  }
  return std::nullopt;
}

// max, min, and, or, xor of one element is that element. (A sum may start from +0: -0 would
// change.)
Result reduce_of_one(const RuleView& view, Op& op) {
  if (op.code != Opcode::reduce) return std::nullopt;
  const auto& a = op.as<ReduceAttr>();
  if (view.type(op.in[0]).shape[static_cast<size_t>(a.axis)] != 1) return std::nullopt;
  switch (a.combiner) {
    case Combiner::min:
    case Combiner::max:
    case Combiner::and_:
    case Combiner::or_:
    case Combiner::xor_:
      return op.in[0];
    case Combiner::sum:
    case Combiner::prod:
    case Combiner::min_num:
    case Combiner::max_num:
    case Combiner::custom:
      return std::nullopt;
  }
  return std::nullopt;
}

Result constant_index(const RuleView& view, Op& op) {
  if (op.code != Opcode::index && op.code != Opcode::iota) return std::nullopt;
  std::optional<int64_t> value;
  const Type& type = view.type(op.out[0]);
  if (op.code == Opcode::index && type.dtype == i64 && op.as<IndexAttr>().value.is_constant())
    value = op.as<IndexAttr>().value.constant();
  if (op.code == Opcode::iota && type.shape[static_cast<size_t>(op.as<AxisAttr>().axis)] == 1)
    value = 0;
  if (!value) return std::nullopt;
  op = {Opcode::full, op.at, {}, op.out, FullAttr{{true, *value, 0}}, {}};
  return op.out[0];
}

}  // namespace

const std::vector<StructuralRule>& structural_rules() {
  static const std::vector<StructuralRule> all = {
      cast_of_cast,           bitcast_of_bitcast, move_of_full,  move_of_move,
      transpose_of_transpose, broadcast_operand,  reduce_of_one, constant_index};
  return all;
}

}  // namespace tw
