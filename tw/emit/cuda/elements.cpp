#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "tw/base/round.h"
#include "tw/emit/cpu/nest.h"
#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cpu/places.h"
#include "tw/emit/cuda/panel.h"
#include "tw/emit/cuda/statements.h"
#include "tw/ir/infer.h"

namespace tw::cuda {
namespace {

/// Memory of the block that holds all of v.
void spread(State& s, ValueId v, const std::function<Reg(Nest&)>& element, const Footprint& reads,
            Writer& out) {
  const Storage storage = s.c.storage.at(v);
  s.c.storage.erase(v);  // it is not there yet
  fill_memory(s, s.placement.layout_of(s.program().type(v).shape), storage, s.memory_of.at(v),
              element, reads, out);
  s.c.storage[v] = storage;
}

}  // namespace

Coords tensor_place(const State& s, const View& view, const Coords& at) {
  Coords coords(view.origin.begin(), view.origin.end());
  for (size_t k = 0; k < view.axes.size(); ++k) {
    coords[view.axes[k]] = simplify(coords[view.axes[k]] + at[k], s.c.facts);
  }
  return coords;
}

void fill_memory(State& s, const layout::ThreadValue& l, const Storage& storage,
                 const Touched& where, const std::function<Reg(Nest&)>& element, Footprint reads,
                 Writer& out) {
  Nest n(s, l);
  n.guard();
  n.require(0, s.first_copy(l));
  cpu::write_element(n.expression(), element(n), {.storage = &storage}, n.at(), "");
  reads.writes.push_back(where);
  Writer text;
  n.emit(text);
  s.append(reads, text, out);
}

void keep_elements(State& s, ValueId v, const std::function<Reg(Nest&)>& element,
                   const Footprint& reads, Writer& out) {
  if (s.in_registers(v)) {
    Writer text;
    Nest n(s, s.placement.layout_of(s.program().type(v).shape));
    const Tile& t = s.declare(v, out);
    const Reg r = element(n);
    if (s.guards(reads)) n.guard();
    write_register(n, r, t);
    n.emit(text);
    s.append(reads, text, out);
  }
  if (!s.in_memory(v)) return;
  s.reserve(v, out);
  if (s.in_registers(v)) {
    spread(
        s, v, [&](Nest& n) { return n.value(v); }, {}, out);
  } else {
    spread(s, v, element, reads, out);
  }
}

namespace {

void emit_value(State& s, const Op& op, Writer& out);

}  // namespace

void emit_kept(State& s, const Op& op, Writer& out) {
  if (!s.placement.in_panel_only(op.out[0])) emit_value(s, op, out);
  keep_panel(s, op.out[0], out);
}

namespace {

/// What the place of a nest must meet to lie in a slice.
void require_inside(Nest& n, State& s, const layout::ThreadValue& l, const Extents& start,
                    const Extents& extents) {
  for (size_t a = 0; a < start.size(); ++a) {
    const Expr& at = n.at()[a];
    const int depth = n.depth_of(at);
    const std::string text = s.c.text(at);
    const int64_t end = start[a] + extents[a];
    if (extents[a] == 1) {
      if (l.reach(a) > 0) n.require(depth, fmt::format("{} == {}", text, start[a]));
      continue;
    }
    if (start[a] > 0) n.require(depth, fmt::format("{} >= {}", text, start[a]));
    if (end < l.tile[a] || l.has_holes(a)) n.require(depth, fmt::format("{} < {}", text, end));
  }
}

/// A few elements of a tile in registers, which the threads that hold them put into memory.
void emit_part(State& s, const Op& op, Writer& out) {
  const ValueId v = op.out[0], whole = op.in[0];
  const layout::ThreadValue l = s.tiles.at(whole).layout;
  const Extents& start = op.as<SliceAttr>().start;
  const Storage storage = s.reserve(v, out);
  s.c.storage.erase(v);
  Nest n(s, l);
  require_inside(n, s, l, start, s.program().type(v).shape);
  n.require(0, s.first_copy(l));
  Coords at = n.at();
  for (size_t a = 0; a < at.size(); ++a)
    at[a] = s.program().type(v).shape[a] == 1 ? Expr(0) : simplify(at[a] - start[a], s.c.facts);
  cpu::write_element(n.expression(), n.value(whole), {.storage = &storage}, at, "");
  s.c.storage[v] = storage;
  Footprint f;
  f.writes.push_back(s.memory_of.at(v));
  Writer text;
  n.emit(text);
  s.append(f, text, out);
}

void emit_value(State& s, const Op& op, Writer& out) {
  const ValueId v = op.out[0];
  if (op.code == Opcode::slice && s.tiles.contains(op.in[0]) && !s.in_memory(op.in[0]))
    return emit_part(s, op, out);
  const Footprint reads = s.reads_of(v);
  const bool loads = op.code == Opcode::load;
  if ((loads || op.code == Opcode::gather) && s.in_registers(v)) {
    const layout::ThreadValue& l = s.placement.layout_of(s.program().type(v).shape);
    const auto run = loads ? run_of(s, l, op.as<ViewAttr>().view) : gather_run_of(s, op);
    if (run && loads && is_late(s, op, *run)) {
      s.late.insert(v);
      return;
    }
    if (run) {
      Writer text;
      loads ? load_runs(s, op, *run, text) : gather_runs(s, op, *run, text);
      s.append(reads, text, out);
      if (!s.in_memory(v)) return;
      s.reserve(v, out);
      return spread(
          s, v, [&](Nest& n) { return n.value(v); }, {}, out);
    }
  }
  keep_elements(
      s, v, [&](Nest& n) { return n.computed(op); }, reads, out);
}

}  // namespace

void assign(State& s, ValueId v, ValueId target, Writer& out) {
  const auto tile = s.tiles.find(target);
  const Footprint reads = s.reads_of(v);
  if (tile != s.tiles.end()) {
    Nest n(s, tile->second.layout);
    const Reg r = n.value(v);
    if (s.guards(reads)) n.guard();
    write_register(n, r, tile->second);
    Writer text;
    n.emit(text);
    s.append(reads, text, out);
  }
  if (s.c.storage.contains(target)) {
    const ValueId from = tile != s.tiles.end() ? target : v;
    const Storage storage = s.c.storage.at(target);
    spread(
        s, target, [&](Nest& n) { return n.value(from); }, from == v ? reads : Footprint{}, out);
  }
}

namespace {

/// How far the counter of a loop moves at least.
int64_t step_of(const State& s, Symbol loop) {
  int64_t step = 1;
  walk(s.program(), [&](const Op& op) {
    if (op.code != Opcode::for_ || op.as<LoopAttr>().loop != loop.id) return;
    if (op.as<LoopAttr>().step.is_constant()) step = op.as<LoopAttr>().step.constant();
  });
  return step;
}

bool stands_in(const Region& r, const Op& wanted) {
  bool found = false;
  walk(r, [&](const Op& op) { found = found || &op == &wanted; });
  return found;
}

/// Whether the ops stand in two branches of a choice that the instance makes once.
bool excluded(const Region& r, const Op& a, const Op& b) {
  for (const Op& op : r.ops) {
    if (op.code != Opcode::if_ || op.regions.size() < 2) continue;
    for (const size_t k : {0, 1}) {
      if (stands_in(op.regions[k], a) && stands_in(op.regions[1 - k], b)) return true;
      if (excluded(op.regions[k], a, b)) return true;
    }
  }
  return false;
}

/// Elements of a window along an axis of the tensor.
int64_t extent_along(const View& view, const Extents& tile, size_t axis) {
  const auto along = std::ranges::find(view.axes, static_cast<int>(axis));
  return along == view.axes.end() ? 1 : tile[along - view.axes.begin()];
}

bool has_loops(const Expr& e) {
  bool any = false;
  for_each_symbol(e, [&](Symbol x) { any = any || x.kind == SymbolKind::loop; });
  return any;
}

/// Whether the other op touches no element of the store's window, in any iterations of loops.
bool windows_apart(const State& s, const Op& store, const Op& op) {
  if (op.code != Opcode::store) return false;
  const View &a = store.as<ViewAttr>().view, &b = op.as<ViewAttr>().view;
  for (size_t axis = 0; axis < a.origin.size(); ++axis) {
    const Expr &x = a.origin[axis], &y = b.origin[axis];
    if (has_loops(x) || has_loops(y)) continue;
    const Expr x_end = x + extent_along(a, s.program().type(store.in[0]).shape, axis);
    const Expr y_end = y + extent_along(b, s.program().type(op.in[0]).shape, axis);
    if (prove_le(x_end, y, s.c.facts) || prove_le(y_end, x, s.c.facts)) return true;
  }
  return false;
}

/// Whether nothing else of the instance touches the elements that the store writes, nor it itself
/// in other iterations of its loops but by the same threads: no barrier need stand before it.
bool keeps_apart(const State& s, const Op& store) {
  const View& view = store.as<ViewAttr>().view;
  const Extents& tile = s.program().type(store.in[0]).shape;
  // Scratch is cleared before, by other threads.
  bool alone = s.program().params[view.param].kind != ParamKind::scratch;
  walk(s.program(), [&](const Op& op) {
    const View* other = view_of(op);
    alone = alone && (&op == &store || other == nullptr || other->param != view.param ||
                      excluded(s.program().body, store, op) || windows_apart(s, store, op));
  });
  std::set<Symbol> seen;
  for (size_t axis = 0; axis < view.origin.size(); ++axis) {
    const int64_t extent = extent_along(view, tile, axis);
    int loops = 0;
    for_each_symbol(view.origin[axis], [&](Symbol x) {
      if (x.kind != SymbolKind::loop || !seen.insert(x).second) return;
      const auto slope = cpu::slope(view.origin[axis], x, s.c.facts);
      ++loops;
      alone = alone && slope && std::abs(*slope) * step_of(s, x) >= extent;
    });
    alone = alone && loops <= 1;
  }
  return alone;
}

/// Elements that share bytes go to one thread: eight are whole bytes whatever their width, and rows
/// begin with a byte.
layout::ThreadValue packed_layout(const State& s, Extents shape) {
  if (shape.empty()) return s.placement.layout_of(shape);
  Extents whole = shape;
  whole.back() = round_up(whole.back(), 8);
  layout::ThreadValue l = layout::blocked(whole, s.placement.threads(), shape.size() - 1, 8);
  l.tile = std::move(shape);
  return l;
}

}  // namespace

void emit_store(State& s, const Op& op, Writer& out) {
  const View& view = op.as<ViewAttr>().view;
  const ValueId v = op.in[0];
  const Extents& shape = s.program().type(v).shape;
  const bool packed = is_packed(s.program().params[view.param].dtype);
  const layout::ThreadValue l = packed ? packed_layout(s, shape) : s.placement.layout_of(shape);
  Footprint f = s.reads_of(v);
  if (!keeps_apart(s, op)) f.writes.push_back({Touched::Space::tensor, view.param, view.param + 1});
  Writer text;
  if (const auto run = run_of(s, l, view)) {
    store_runs(s, op, *run, text);
    return s.append(f, text, out);
  }
  Nest n(s, l);
  n.guard();
  n.require(0, s.first_copy(l));
  const Coords coords = tensor_place(s, view, n.at());
  for (const cpu::Bound& b : cpu::open_bounds(s.c, view.param, coords)) {
    n.require(n.depth_of(b.at), cpu::condition(s.c, b));
  }
  cpu::write_element(n.expression(), n.value(v), {.view = &view}, n.at(), "");
  n.emit(text);
  s.append(f, text, out);
}

namespace {

/// The kind of an atomic that gives one result whatever the order of such.
std::optional<AtomicOp> commuting(const Op& op) {
  if (op.code != Opcode::atomic || !op.out.empty()) return std::nullopt;
  const AtomicAttr& a = op.as<AtomicAttr>();
  const bool exchanges = a.op == AtomicOp::exch || a.op == AtomicOp::cas;
  return exchanges || a.order != MemoryOrder::relaxed ? std::nullopt : std::optional(a.op);
}

/// Whether no two elements of a scatter go to one place: along each axis of the tile some
/// coordinate moves, and along no other.
bool places_differ(State& s, const Op& op, const Extents& shape) {
  Coords at;
  std::vector<Symbol> counters;
  for (const int64_t extent : shape) {
    counters.push_back(s.c.new_symbol("element", SymbolFact{{0, extent - 1}, 1}));
    at.push_back(extent == 1 ? Expr(0) : Expr::symbol(counters.back()));
  }
  Expression e(s.c);
  std::set<size_t> told;
  for (const ValueId v : place_operands(op).at) {
    const auto x = cpu::as_index(e, v, at, cpu::Through::everything);
    if (!x) continue;
    std::vector<size_t> moved;
    for (size_t a = 0; a < shape.size(); ++a) {
      if (mentions(*x, counters[a])) moved.push_back(a);
    }
    if (moved.size() != 1) continue;
    const auto slope = cpu::slope(*x, counters[moved[0]], s.c.facts);
    if (slope && *slope != 0) told.insert(moved[0]);
  }
  for (size_t a = 0; a < shape.size(); ++a) {
    if (shape[a] > 1 && !told.contains(a)) return false;
  }
  return true;
}

}  // namespace

void emit_place(State& s, const Op& op, Writer& out) {
  const bool atomic = op.code == Opcode::atomic;
  const ValueId v = *place_operands(op).value;
  const Extents shape = place_extents(s.program(), op);
  Footprint f;
  for (const ValueId in : op.in) f.add(s.reads_of(in));
  const int param = view_of(op)->param;
  f.writes.push_back({Touched::Space::tensor, param, param + 1, commuting(op)});
  Writer text;
  if (op.out.empty() && (atomic || places_differ(s, op, shape))) {
    const layout::ThreadValue& l = s.placement.layout_of(shape);
    Nest n(s, l);
    n.guard();
    n.require(0, s.first_copy(l));
    cpu::write_place(n.expression(), n.value(v), op, nullptr, n.at(), "");
    n.emit(text);
    return s.append(f, text, out);
  }
  // Of several elements at one place the last counts, and an atomic gives what was there before:
  // one thread does them in order.
  const size_t last = shape.empty() ? 0 : shape.size() - 1;
  const layout::ThreadValue serial = layout::blocked(shape, 1, last, 1);
  const Storage* old = nullptr;
  if (!op.out.empty()) {
    s.reserve(op.out[0], out);
    old = &s.c.storage.at(op.out[0]);
    f.writes.push_back(s.memory_of.at(op.out[0]));
  }
  Nest n(s, serial);
  n.require(0, s.thread() + " == 0");
  cpu::write_place(n.expression(), n.value(v), op, old, n.at(), "");
  n.emit(text);
  s.append(f, text, out);
}

}  // namespace tw::cuda
