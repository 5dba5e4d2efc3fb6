#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "tw/emit/cpu/op_table.h"

namespace tw::cpu {
namespace {

/// A function of four bits of the bytes of a tile: of those from `shift` on.
struct Nibble {
  ValueId packed;
  Coords at;
  int shift;
  std::array<float, 16> table;
};

/// The bits that a u8 value is, if it is four bits of a byte.
std::optional<Nibble> bits_of(Expression& e, ValueId v, const Coords& at) {
  Context& c = e.context();
  const Op* op = c.storage.contains(v) || e.bindings().contains(v) ? nullptr : c.def[v];
  if (!op || c.program.type(v).dtype != u8) return std::nullopt;
  Coords here = at;
  for (size_t k = 0; k < here.size(); ++k) {
    if (c.program.type(v).shape[k] == 1) here[k] = 0;
  }
  if (op->code == Opcode::where) {
    const std::string mask = e.value(op->in[0], here).text;
    if (mask != "true" && mask != "false") return std::nullopt;
    return bits_of(e, op->in[mask == "true" ? 1 : 2], here);
  }
  const bool low = op->code == Opcode::and_, high = op->code == Opcode::shr;
  const std::optional<Number> by = low || high ? constant_of(c, op->in[1]) : std::nullopt;
  if (!by || by->as_double() != (low ? 15 : 4)) return std::nullopt;
  Nibble n{op->in[0], std::move(here), low ? 0 : 4, {}};
  for (int i = 0; i < 16; ++i) n.table[i] = static_cast<float>(i);
  return n;
}

/// v, an f32 value, as sums, differences and products of four bits with constants.
std::optional<Nibble> nibble_of(Expression& e, ValueId v, const Coords& at) {
  Context& c = e.context();
  const Op* op = c.storage.contains(v) || e.bindings().contains(v) ? nullptr : c.def[v];
  if (!op || c.program.type(v).dtype != f32) return std::nullopt;
  if (op->code == Opcode::cast) return bits_of(e, op->in[0], at);
  if (op->code != Opcode::add && op->code != Opcode::sub && op->code != Opcode::mul) {
    return std::nullopt;
  }
  const std::optional<Number> by = constant_of(c, op->in[1]);
  std::optional<Nibble> n = by ? nibble_of(e, op->in[0], at) : std::nullopt;
  for (int i = 0; n && i < 16; ++i) {
    const auto b = static_cast<float>(by->as_double());
    float& x = n->table[i];
    x = op->code == Opcode::add ? x + b : op->code == Opcode::sub ? x - b : x * b;
  }
  return n;
}

}  // namespace

std::optional<Number> constant_of(const Context& c, ValueId v) {
  const Op* op = c.def[v];
  while (op && (op->code == Opcode::broadcast || op->code == Opcode::reshape)) {
    op = c.def[op->in[0]];
  }
  if (op && op->code == Opcode::full) return op->as<FullAttr>().value;
  if (!op || op->code != Opcode::cast) return std::nullopt;
  // Of a small integer every cast is exact.
  const std::optional<Number> n = constant_of(c, op->in[0]);
  const bool small = n && n->integral && n->i >= 0 && n->i < 16;
  return small && c.program.type(v).dtype != b1 ? n : std::nullopt;
}

std::optional<Reg> look_up(Expression& e, ValueId v, const Coords& at) {
  Context& c = e.context();
  if (e.lane_loop() < 0 || !c.prelude.has_lookup(e.lanes())) return std::nullopt;
  std::optional<Nibble> n = nibble_of(e, v, at);
  if (!n || !std::ranges::all_of(n->table, [](float x) { return std::isfinite(x); })) {
    return std::nullopt;
  }
  const Reg packed = e.value(n->packed, n->at);
  if (packed.lanes == 1) return std::nullopt;
  const std::string extend = c.prelude.use("extend", u8, packed.lanes);
  Reg number =
      e.define(i32, packed.lanes, packed.loops, fmt::format("{}({})", extend, packed.text));
  if (n->shift > 0) number = e.combine(fmt::format("$0 >> {}", n->shift), i32, {number});
  std::string table;
  for (const float x : n->table) table += fmt::format("{}{:a}f", table.empty() ? "" : ", ", x);
  const std::string f = c.prelude.use("lookup", f32, packed.lanes);
  return e.define(
      f32, packed.lanes, number.loops,
      fmt::format("{}(({}){{{}}}, {})", f, c.prelude.type(f32, packed.lanes), table, number.text));
}

}  // namespace tw::cpu
