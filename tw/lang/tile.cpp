#include "tw/lang/tile.h"

#include <cmath>
#include <fmt/format.h>

#include "tw/ir/infer.h"
#include "tw/ir/print.h"
#include "tw/lang/impl/state.h"

namespace tw {

// ---- constants

std::optional<Number> Constant::as(DType t) const {
  if (is_float(t)) {
    const double rounded = decode(t, encode(t, value_.f));
    if (std::isfinite(value_.f) && !std::isfinite(rounded)) return std::nullopt;
    // Without infinity and NaN what does not fit would become the largest silently.
    if (!has_nan(t) && !(std::fabs(value_.f) <= largest(t))) return std::nullopt;
    if (std::isinf(value_.f) && !std::isinf(rounded)) return std::nullopt;
    return Number{false, 0, rounded};
  }
  int64_t i = value_.i;
  if (!value_.integral) {
    if (!(value_.f == std::trunc(value_.f) && std::fabs(value_.f) < 0x1p63)) return std::nullopt;
    i = static_cast<int64_t>(value_.f);
  }
  if (above_int64_) return t == u64 ? std::optional(Number{true, i, 0}) : std::nullopt;
  if (t == b1) return i == 0 || i == 1 ? std::optional(Number{true, i, 0}) : std::nullopt;
  const bool fits = t == i64 || (t == u64 ? i >= 0
                                          : i >= static_cast<int64_t>(lowest(t)) &&
                                                i <= static_cast<int64_t>(largest(t)));
  return fits ? std::optional(Number{true, i, 0}) : std::nullopt;
}

std::string Constant::text() const {
  if (!value_.integral) return fmt::format("{}", value_.f);
  return above_int64_ ? fmt::format("{}", static_cast<uint64_t>(value_.i))
                      : fmt::format("{}", value_.i);
}

// ---- variables

Tile::Tile(std::shared_ptr<TraceState> trace, ValueId value)
    : trace_(std::move(trace)), slot_(trace_->new_slot(value)) {}

Tile::Tile(const Tile& other, SourceLoc at)
    : trace_(other.trace_), slot_(trace_->new_slot(other.read(at))) {}

// `other` keeps its trace: what uses it afterwards is told so.
Tile::Tile(Tile&& other) noexcept
    : trace_(other.trace_), slot_(std::exchange(other.slot_, TraceState::kMoved)) {}

Tile& Tile::operator=(const Tile& other) {
  if (this == &other) return *this;
  if (trace_ != other.trace_)
    trace_->fail(other.trace_->made_at(other.slot_),
                 "a Tile of another program is assigned to this variable");
  trace_->write(slot_, other.read({}));
  return *this;
}

Tile::~Tile() { trace_->free_slot(slot_); }

ValueId Tile::read(SourceLoc at) const { return trace_->read(slot_, at); }

Type Tile::type(SourceLoc at) const { return trace_->type(read(at)); }

int64_t Tile::extent(int axis, SourceLoc at) const {
  const Type t = type(at);
  if (axis < 0 || static_cast<size_t>(axis) >= t.shape.size())
    trace_->fail(at, fmt::format("extent {} of {}", axis, to_string(t)));
  return t.shape[static_cast<size_t>(axis)];
}

Tile Tile::named(const std::string& name, SourceLoc at) const {
  if (!is_identifier(name))
    trace_->fail(at, fmt::format("'{}' names a value, wanted letters, digits and _", name));
  trace_->name_value(read(at), name);
  return Tile(*this, at);
}

// ---- operators

namespace {

ValueId constant_operand(TraceState& t, const Constant& c, const Type& like, SourceLoc at) {
  const auto number = c.as(like.dtype);
  if (!number)
    t.fail(at, fmt::format("constant {} does not fit {}", c.text(), to_string(like)),
           "cast the tile to a type that holds it");
  return t.constant(like.dtype, Extents(like.shape.size(), 1), *number, at);
}

ValueId index_operand(TraceState& t, const Index& i, const Type& like, SourceLoc at) {
  if (like.dtype == b1)
    t.fail(at, fmt::format("an index beside {}", to_string(like)), "compare it first");
  const ValueId v = t.index(i, like.shape.size(), at);
  if (like.dtype == i64) return v;
  return t.emit(Opcode::cast, {v}, CastAttr{}, {like.dtype, Extents(like.shape.size(), 1)}, at);
}

}  // namespace

ValueId operand(TraceState& t, const Arg& a, const Type& like) {
  if (const auto* v = a.value()) {
    if (v->trace.get() != &t) t.fail(a.at(), "the operands belong to two programs");
    return v->id;
  }
  if (const Index* i = a.index()) return index_operand(t, *i, like, a.at());
  return constant_operand(t, *a.constant(), like, a.at());
}

Tile elementwise(Opcode code, const Arg& a, const Arg& b) {
  const Arg::Value* tile = a.value() != nullptr ? a.value() : b.value();
  if (tile == nullptr)
    throw UserError(a.at(), fmt::format("'{}' has no tile among its operands", info(code).name),
                    "Index values combine with integers only; k.full() makes a tile");
  TraceState& t = *tile->trace;
  const Type like = t.type(tile->id);
  const ValueId left = operand(t, a, like), right = operand(t, b, like);
  const SourceLoc at = a.at();
  const Type r = t.checked([&] { return infer_binary(code, t.type(left), t.type(right), at); });
  return Tile(tile->trace, t.emit(code, {left, right}, NoneAttr{}, r, at));
}

Tile elementwise(Opcode code, const Arg& a) {
  const Arg::Value* tile = a.value();
  if (tile == nullptr) throw UserError(a.at(), fmt::format("'{}' needs a tile", info(code).name));
  TraceState& t = *tile->trace;
  const Type r = t.checked([&] { return infer_unary(code, t.type(tile->id), a.at()); });
  return Tile(tile->trace, t.emit(code, {tile->id}, NoneAttr{}, r, a.at()));
}

}  // namespace tw
