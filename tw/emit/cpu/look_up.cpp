#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "tw/base/hash.h"
#include "tw/emit/cpu/op_table.h"

namespace tw::cpu {
namespace {

/// Entries of the tables that lie in a register; shorter ones end in zeros.
constexpr size_t kPermuted = 16;

/// A function of four bits of the bytes of a tile: of those from `shift` on.
struct Nibble {
  ValueId packed;
  Coords at;
  int shift;
  std::array<float, kPermuted> table;
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
  if (op->code == Opcode::lookup) {
    std::optional<Nibble> n = bits_of(e, op->in[0], at);
    const std::vector<Number>& entries = op->as<TableAttr>().entries;
    for (size_t i = 0; n && i < kPermuted; ++i)
      n->table[i] = i < entries.size() ? static_cast<float>(entries[i].f) : 0;
    return n;
  }
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

/// The name of the table as an array of at least kPermuted elements.
std::string declare_table(Expression& e, DType t, const std::vector<Number>& entries) {
  Prelude& prelude = e.context().prelude;
  std::string list;
  for (const Number& n : entries) list += (list.empty() ? "" : ", ") + e.literal(t, n).text;
  const std::string type = prelude.type(register_type(t));
  const std::string text = fmt::format("[{}] = {{{}}};", std::max(entries.size(), kPermuted), list);
  const std::string name = "tw_table_" + hash_hex(type + text);
  prelude.add(name, fmt::format("{}static const {} {}{}", prelude.placed(), type, name, text));
  return name;
}

bool may_permute(DType t) { return t == f32 || t == i32 || t == u32 || t == i8 || t == u8; }

/// Of lanes of the numbers of entries, all below kPermuted.
Reg permuted(Expression& e, DType t, const std::vector<Number>& entries, const Reg& number) {
  const std::string f = e.context().prelude.use("lookup", register_type(t), number.lanes);
  return e.define(t, number.lanes, number.loops,
                  fmt::format("{}({}, {})", f, declare_table(e, t, entries), number.text));
}

/// The largest element that v may have, where none can be negative.
std::optional<uint64_t> largest_of(const Context& c, ValueId v, int depth = 8) {
  const DType t = c.program.type(v).dtype;
  const Op* op = c.def[v];
  std::optional<uint64_t> most;
  if (!is_signed_int(t)) most = ~uint64_t{0} >> (64 - bits(t));
  if (!op || depth == 0) return most;
  const auto in = [&](size_t k) { return largest_of(c, op->in[k], depth - 1); };
  std::optional<uint64_t> found;
  if (op->code == Opcode::and_) {
    const auto a = in(0), b = in(1);
    found = a && b ? std::min(*a, *b) : a ? a : b;
  } else if (op->code == Opcode::shr) {
    const auto a = in(0);
    const auto by = constant_of(c, op->in[1]);
    if (a && by && by->i >= 0 && by->i < bits(t)) found = *a >> by->i;
  } else if (op->code == Opcode::where) {
    const auto a = in(1), b = in(2);
    if (a && b) found = std::max(*a, *b);
  } else if (op->code == Opcode::full) {
    const int64_t n = op->as<FullAttr>().value.i;
    if (n >= 0) found = n;
  } else if (op->code == Opcode::broadcast || op->code == Opcode::reshape ||
             op->code == Opcode::keep ||
             (op->code == Opcode::cast && is_int(c.program.type(op->in[0]).dtype))) {
    found = in(0);
    // A cast to fewer bits wraps.
    const uint64_t top = (~uint64_t{0} >> (64 - bits(t))) >> (is_signed_int(t) ? 1 : 0);
    if (found && *found > top) found.reset();
  }
  return found && most ? std::min(*found, *most) : found ? found : most;
}

}  // namespace

std::optional<Number> constant_of(const Context& c, ValueId v) {
  const Op* op = c.def[v];
  while (op && (op->code == Opcode::broadcast || op->code == Opcode::reshape)) {
    op = c.def[op->in[0]];
  }
  if (op && op->code == Opcode::full) return op->as<FullAttr>().value;
  if (!op || op->code != Opcode::cast) return std::nullopt;
  // Of a small integer every cast is exact, to types that hold it.
  const std::optional<Number> n = constant_of(c, op->in[0]);
  const bool small = n && n->integral && n->i >= 0 && n->i < 16;
  return small && !only_stores(c.program.type(v).dtype) && c.program.type(v).dtype != b1
             ? n
             : std::nullopt;
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
  std::vector<Number> entries;
  for (const float x : n->table) entries.push_back({false, 0, x});
  return permuted(e, f32, entries, number);
}

Reg lookup_element(Expression& e, const Op& op, const Coords& at) {
  Context& c = e.context();
  if (const std::optional<Reg> r = look_up(e, op.out[0], at)) return *r;
  const std::vector<Number>& table = op.as<TableAttr>().entries;
  const DType t = c.program.type(op.out[0]).dtype;
  const std::optional<uint64_t> most = largest_of(c, op.in[0]);
  const bool inside = most && *most < table.size();
  const Reg index = e.value(op.in[0], at);
  const Reg zero = e.literal(t, {!is_float(t), 0, 0});
  if (index.lanes > 1 && table.size() <= kPermuted && t != b1 && may_permute(register_type(t))) {
    const Reg r = permuted(e, t, table, converted(e, index, bytes(t) == 1 && is_int(t) ? i8 : i32));
    if (inside) return r;
    const std::string u = c.prelude.type(unsigned_of_bytes(bytes(index.dtype)), index.lanes);
    return select(e, e.combine(fmt::format("({})$0 < {}", u, table.size()), b1, {index}), r, zero);
  }
  const std::string i = index.text + (index.lanes > 1 ? "[l]" : "");
  const std::string entry = fmt::format("{}[{}]", declare_table(e, t, table), i);
  const std::string text =
      inside ? entry : fmt::format("((u64){} < {} ? {} : {})", i, table.size(), entry, zero.text);
  return index.lanes > 1 ? e.define_lanes(t, index.loops, text) : e.define(t, 1, index.loops, text);
}

}  // namespace tw::cpu
