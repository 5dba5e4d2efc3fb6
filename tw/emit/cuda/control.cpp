#include <fmt/format.h>
#include <utility>

#include "tw/base/error.h"
#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cuda/ahead.h"
#include "tw/emit/cuda/ring.h"
#include "tw/emit/cuda/statements.h"

namespace tw::cuda {
namespace {

/// Where results of control flow live: registers, memory or both.
void declare_result(State& s, ValueId v, Writer& out) {
  if (s.in_registers(v)) s.declare(v, out);
  if (s.in_memory(v)) s.reserve(v, out);
}

/// The argument of a region is the loop's result.
void alias(State& s, ValueId argument, ValueId result) {
  if (const auto tile = s.tiles.find(result); tile != s.tiles.end())
    s.tiles[argument] = Tile(tile->second);
  if (const auto storage = s.c.storage.find(result); storage != s.c.storage.end()) {
    s.c.storage[argument] = Storage(storage->second);
    s.memory_of[argument] = Touched(s.memory_of.at(result));
  }
}

/// Uses that want memory of one want it of the other.
void share_scattered(State& s, ValueId a, ValueId b) {
  if (s.scattered.contains(a) != s.scattered.contains(b)) s.scattered.insert({a, b});
}

/// A fresh tile with the elements of v, so that targets may be written while others are read.
ValueId copied(State& s, ValueId v, Writer& out) {
  ValueId copy = s.copy_of(v);
  keep_elements(
      s, copy, [&](Nest& n) { return n.value(v); }, s.reads_of(v), out);
  return copy;
}

void assign_all(State& s, const std::vector<ValueId>& from, const std::vector<ValueId>& to,
                Writer& out) {
  const MemoryScope scope(s);
  std::vector<ValueId> copies = from;
  for (size_t k = 0; k < from.size(); ++k) {
    if (from[k] == to[k]) continue;
    // One tile of registers is read and written at the same places.
    const bool alone = from.size() == 1 && !s.in_memory(to[k]);
    if (!alone) copies[k] = copied(s, from[k], out);
  }
  for (size_t k = 0; k < from.size(); ++k) {
    if (from[k] != to[k]) assign(s, copies[k], to[k], out);
  }
}

/// A region that is done any number of times: what its end leaves to do, its beginning may meet.
/// With a ring, threads meet at its beginning.
void emit_iteration(State& s, const Op& op, Ring* ring, Ahead* ahead, Writer& out) {
  const Region& body = op.regions[0];
  const MemoryScope scope(s);
  Footprint enclosing = std::exchange(s.head, {});
  const bool met = std::exchange(s.met, false);
  const Footprint before = s.pending, outside = s.outside;
  if (ring != nullptr) ring->next(out);
  if (ahead != nullptr) ahead->next(out);
  emit_region(s, body, out);
  assign_all(s, body.yields, body.args, out);
  if (ring == nullptr && s.head.conflicts_with(s.pending)) s.barrier(out);
  if (!met) enclosing.add(s.head);
  s.head = enclosing;
  s.met = met;
  s.pending.add(before);  // the loop may be left at once
  if (!s.before_loop) s.outside = outside;
}

/// Writes the body of a loop without a ring. Where it touches what is pending, threads meet once
/// before the loop.
void emit_repeated(State& s, const Op& op, Ahead* ahead, Writer& body, Writer& out) {
  const Footprint before = std::exchange(s.pending, {}), enclosing = s.outside;
  const bool enclosing_meets = std::exchange(s.before_loop, false);
  s.outside.add(before);
  emit_iteration(s, op, nullptr, ahead, body);
  const bool meet = std::exchange(s.before_loop, enclosing_meets);
  s.outside = enclosing;
  const Footprint after = s.pending;
  if (meet) s.barrier(out);
  s.pending = after;
  if (!meet) s.pending.add(before);
}

void emit_first(State& s, const Op& op, Writer& out) {
  const Region& body = op.regions[0];
  for (size_t k = 0; k < op.out.size(); ++k) {
    share_scattered(s, op.out[k], body.args[k]);
    declare_result(s, op.out[k], out);
    assign(s, op.in[k], op.out[k], out);
    alias(s, body.args[k], op.out[k]);
  }
}

void emit_for(State& s, const Op& op, Writer& out) {
  const LoopAttr& a = op.as<LoopAttr>();
  emit_first(s, op, out);
  const std::string i = s.c.loop_names.at(a.loop);
  out.line(fmt::format("const i64 {}_end = {};", i, s.c.text(a.hi)));
  const MemoryScope scope(s);
  Ring ring(s, op);
  if (!ring.empty()) ring.begin(out);
  Ahead ahead(s, op);
  if (!ahead.empty()) ahead.begin(out);
  Writer body;
  if (ring.empty()) {
    emit_repeated(s, op, ahead.empty() ? nullptr : &ahead, body, out);
  } else {
    emit_iteration(s, op, &ring, nullptr, body);
  }
  out.line("#pragma unroll 1");
  out.open(fmt::format("for (i64 {0} = {1}; {0} < {0}_end; {0} += {2}) {{", i, s.c.text(a.lo),
                       s.c.text(a.step)));
  out.append(body);
  out.close();
  if (!ring.empty()) ring.end();
}

void emit_while(State& s, const Op& op, Writer& out) {
  emit_first(s, op, out);
  out.open(fmt::format("while ({}) {{", s.tiles.at(op.out[0]).name));
  emit_iteration(s, op, nullptr, nullptr, out);
  out.close();
}

void emit_if(State& s, const Op& op, Writer& out) {
  const CondAttr& a = op.as<CondAttr>();
  const char* sign = a.kind == CompareKind::lt   ? "<"
                     : a.kind == CompareKind::le ? "<="
                     : a.kind == CompareKind::eq ? "=="
                                                 : "!=";
  for (const ValueId v : op.out) declare_result(s, v, out);
  out.open(fmt::format("if ({} {} {}) {{", s.c.text(a.a), sign, s.c.text(a.b)));
  const Footprint before = s.pending, outside = s.outside;
  const bool met = s.met;
  bool meet = op.regions.size() > 1;
  Footprint after;
  for (size_t k = 0; k < op.regions.size(); ++k) {
    if (k == 1) {
      out.close("} else {");
      out.deeper();
    }
    s.pending = before;
    s.outside = outside;
    s.met = met;
    const MemoryScope scope(s);
    ++s.branches;
    emit_region(s, op.regions[k], out);
    --s.branches;
    assign_all(s, op.regions[k].yields, op.out, out);
    after.add(s.pending);
    meet = meet && s.met;
  }
  s.met = met || meet;
  if (op.regions.size() < 2) after.add(before);
  s.pending = after;
  s.outside = s.before_loop ? Footprint{} : outside;
  out.close();
}

using EmitStatement = void (*)(State& s, const Op& op, Writer& out);

const std::pair<Opcode, EmitStatement> kStatements[] = {
    {Opcode::store, emit_store},   {Opcode::scatter, emit_place},  {Opcode::atomic, emit_place},
    {Opcode::reduce, emit_reduce}, {Opcode::scan, emit_scan},      {Opcode::top_k, emit_top_k},
    {Opcode::dot, emit_dot},       {Opcode::for_, emit_for},       {Opcode::while_, emit_while},
    {Opcode::if_, emit_if},        {Opcode::assert_, emit_assert}, {Opcode::print, emit_print},
};

void emit_statement(State& s, const Op& op, Writer& out) {
  if (cpu::is_expression(s.program(), op)) return emit_kept(s, op, out);
  for (const auto& [code, emit] : kStatements) {
    if (code == op.code) return emit(s, op, out);
  }
  throw InternalError(fmt::format("'{}' reached the emitter for GPUs", info(op.code).name));
}

}  // namespace

void emit_region(State& s, const Region& r, Writer& out) {
  for (const Op& op : r.ops) {
    const bool expression = cpu::is_expression(s.program(), op);
    if (expression && !s.placement.kept(op) && !s.placement.in_panel_only(op.out[0])) continue;
    // Panels filled, and tiles fetched, since an earlier iteration.
    if (expression && (s.panels.contains(op.out[0]) || s.fetched.contains(op.out[0]))) continue;
    out.line();
    if (s.c.debug_lines && op.at.known())
      out.line(fmt::format("#line {} \"{}\"", op.at.line, op.at.file));
    emit_statement(s, op, out);
  }
}

}  // namespace tw::cuda
