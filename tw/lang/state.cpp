#include "tw/lang/impl/state.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tw/ir/infer.h"
#include "tw/ir/verify.h"

namespace tw {

TraceState::TraceState(std::string name, SourceLoc at) : at_(at) {
  program.name = std::move(name);
  open_frame(FrameKind::root, at);
}

// ---- errors

void TraceState::fail(SourceLoc at, const std::string& what, const std::string& hint) const {
  const std::string prefix = scopes.empty() ? "" : fmt::format("in {}: ", fmt::join(scopes, "/"));
  throw UserError(pinned.known() ? pinned : at, prefix + what, hint);
}

void TraceState::check_open(SourceLoc at) const {
  if (finished_) fail(at, fmt::format("program '{}' is finished", program.name));
}

Expr TraceState::expr(const Index& i, SourceLoc at) const {
  if (i.problem() != nullptr) fail(at, i.problem());
  if (i.owner() && i.owner().get() != this) fail(at, "this index belongs to another program");
  for_each_symbol(i.expr(), [&](Symbol s) {
    auto counts = [&](const Frame& f) { return f.loop && f.loop->loop == s.id; };
    if (s.kind == SymbolKind::loop && std::none_of(frames_.begin(), frames_.end(), counts))
      fail(at, fmt::format("loop counter {} is used after its loop", symbol_name(program, s)));
  });
  return i.expr();
}

Expr TraceState::host_expr(const Index& i, const std::string& what, SourceLoc at) const {
  const Expr e = expr(i, at);
  for_each_symbol(e, [&](Symbol s) {
    if (s.kind != SymbolKind::dim)
      fail(at, fmt::format("{} depends on {}, which is not known at launch", what,
                           symbol_name(program, s)));
  });
  return e;
}

Facts TraceState::facts() const {
  Facts facts = facts_of(program);
  for (const Frame& f : frames_)
    if (f.loop) facts[{SymbolKind::loop, f.loop->loop}] = fact_of_loop(*f.loop, facts);
  return facts;
}

std::string TraceState::place(SourceLoc at) const {
  return at.known() ? fmt::format("{}:{}", at.file, at.line) : "its definition";
}

// ---- variables

uint64_t TraceState::new_slot(ValueId v) {
  slots_[++last_slot_] = {v, frames_.back().id};
  return last_slot_;
}

void TraceState::free_slot(uint64_t slot) { slots_.erase(slot); }

ValueId TraceState::read(uint64_t slot, SourceLoc at) {
  check_open(at);
  if (slot == kMoved) fail(at, "this Tile was moved from", "copy it instead");
  return read(slot, frames_.size() - 1, at);
}

ValueId TraceState::read(uint64_t slot, size_t depth, SourceLoc at) {
  Frame& f = frames_[depth];
  const Slot& s = slots_.at(slot);
  if (s.frame == f.id) return s.value;
  if (auto it = f.outer.find(slot); it != f.outer.end()) return it->second.now;
  if (depth == 0) {
    const SourceLoc defined = program.values[s.value].at;
    fail(at.known() ? at : defined,
         fmt::format("the value made at {} is used after the loop or branch it belongs to",
                     place(defined)),
         "assign it to a Tile declared outside");
  }
  const ValueId before = read(slot, depth - 1, at);
  if (f.kind == FrameKind::combiner)
    fail(at, "a combiner uses a tile from outside", "it sees only its arguments and constants");
  ValueId entry = before;
  if (f.kind == FrameKind::loop) {
    const Value outside = program.values[before];
    entry = program.new_value(outside.type, outside.at, outside.name);
  }
  f.outer[slot] = {entry, before, entry};
  return entry;
}

void TraceState::write(uint64_t slot, ValueId v) {
  const Value now = program.values[v];
  const ValueId old = read(slot, now.at);
  if (!(type(old) == now.type))
    fail(now.at,
         fmt::format("a Tile variable keeps its type: it is {} since {}, this value is {}",
                     to_string(type(old)), place(program.values[old].at), to_string(now.type)),
         "cast or reshape it, or make a new variable");
  Frame& f = frames_.back();
  Slot& s = slots_.at(slot);
  if (s.frame == f.id) {
    s.value = v;
    return;
  }
  Outer& o = f.outer.at(slot);
  o.now = v;
  if (o.first_write == 0) o.first_write = ++writes_;
}

void TraceState::write_if_alive(uint64_t slot, ValueId v) {
  if (slots_.count(slot) > 0) write(slot, v);
}

// ---- ops

ValueId TraceState::emit(Opcode code, std::vector<ValueId> in, Attr attr, Type type, SourceLoc at) {
  if (pinned.known()) at = pinned;
  const ValueId v = program.new_value(std::move(type), at);
  append({code, at, std::move(in), {v}, std::move(attr), {}});
  return v;
}

void TraceState::append(Op op) {
  if (pinned.known()) op.at = pinned;
  check_open(op.at);
  if (frames_.back().kind == FrameKind::combiner && !is_elementwise(op.code))
    fail(op.at, fmt::format("'{}' cannot stand in a combiner, which works on single elements",
                            info(op.code).name));
  frames_.back().region.ops.push_back(std::move(op));
}

ValueId TraceState::constant(DType t, const Extents& shape, const Number& n, SourceLoc at) {
  return emit(Opcode::full, {}, FullAttr{n}, {t, shape}, at);
}

ValueId TraceState::index(const Index& i, size_t rank, SourceLoc at) {
  return emit(Opcode::index, {}, IndexAttr{expr(i, at)}, {i64, Extents(rank, 1)}, at);
}

// ---- control

uint64_t TraceState::open_frame(FrameKind kind, SourceLoc at) {
  frames_.push_back({++last_frame_, kind, {}, {}, std::nullopt, at, 0});
  return last_frame_;
}

// Slots in the order of their first write, which is the same under every host compiler; slot
// numbers are not, as arguments of a call are made in any order.
TraceState::Written TraceState::written_in_order(const std::map<uint64_t, Outer>& outer) {
  Written w;
  for (const auto& [slot, o] : outer)
    if (o.first_write > 0) w.emplace_back(slot, o);
  std::sort(w.begin(), w.end(), [](const auto& a, const auto& b) {
    return a.second.first_write < b.second.first_write;
  });
  return w;
}

void TraceState::check_control(const char* what, SourceLoc at) const {
  check_open(at);
  if (frames_.back().kind == FrameKind::combiner)
    fail(at, fmt::format("'{}' cannot stand in a combiner, which works on single elements", what));
}

uint64_t TraceState::open_while(ValueId go, SourceLoc at) {
  check_control("while", at);
  const uint64_t id = open_frame(FrameKind::loop, at);
  frames_.back().go = go;
  return id;
}

uint64_t TraceState::open_loop(LoopAttr loop, SourceLoc at) {
  check_control("for", at);
  loop.loop = program.loops++;
  const uint64_t id = open_frame(FrameKind::loop, at);
  frames_.back().loop = loop;
  return id;
}

void TraceState::close_loop(uint64_t frame, std::optional<ValueId> go) {
  if (frames_.back().id != frame) return abandon(frame, at_, "loops are closed out of order");
  Frame f = std::move(frames_.back());
  frames_.pop_back();
  Op op{Opcode::for_, f.at, {}, {}, NoneAttr{}, {}};
  if (f.loop) op.attr = *f.loop;
  if (go) {
    const Type flag{b1, {}};
    op.code = Opcode::while_;
    op.in = {f.go};
    op.out = {program.new_value(flag, f.at)};
    f.region.args = {program.new_value(flag, f.at)};
    f.region.yields = {*go};
  }
  std::vector<std::pair<uint64_t, ValueId>> results;
  for (const auto& [slot, o] : f.outer)
    if (o.first_write == 0) same_as_[o.entry] = o.before;
  for (const auto& [slot, o] : written_in_order(f.outer)) {
    const Value carried = program.values[o.entry];
    const ValueId result = program.new_value(carried.type, program.values[o.now].at, carried.name);
    op.in.push_back(o.before);
    f.region.args.push_back(o.entry);
    f.region.yields.push_back(o.now);
    op.out.push_back(result);
    results.emplace_back(slot, result);
  }
  op.regions.push_back(std::move(f.region));
  append(std::move(op));
  for (const auto& [slot, v] : results) write_if_alive(slot, v);
}

void TraceState::abandon(uint64_t frame, SourceLoc at, const std::string& what) {
  if (!noted_) noted_.emplace(at, what);
  auto is_it = [&](const Frame& f) { return f.id == frame; };
  const auto it = std::find_if(frames_.begin(), frames_.end(), is_it);
  if (it != frames_.end() && it != frames_.begin()) frames_.erase(it, frames_.end());
}

TraceState::Frame TraceState::in_frame(FrameKind kind, SourceLoc at,
                                       const std::function<void()>& f) {
  const uint64_t id = open_frame(kind, at);
  try {
    f();
  } catch (...) {
    abandon(id, at, "an error left this region while it was traced");
    throw;
  }
  if (frames_.back().id != id) {
    abandon(id, at, "a loop inside this region was never closed");
    fail(at, "a loop inside this region was never closed");
  }
  Frame done = std::move(frames_.back());
  frames_.pop_back();
  return done;
}

void TraceState::branch(const CondAttr& cond, SourceLoc at, const std::function<void()>& then,
                        const std::function<void()>& otherwise) {
  check_control("if", at);
  Frame sides[2] = {in_frame(FrameKind::branch, at, then),
                    in_frame(FrameKind::branch, at, otherwise)};
  std::map<uint64_t, Outer> all = sides[0].outer;
  for (const auto& [slot, o] : sides[1].outer) {
    Outer& merged = all.emplace(slot, o).first->second;
    if (merged.first_write == 0) merged.first_write = o.first_write;
  }
  Op op{Opcode::if_, at, {}, {}, cond, {}};
  std::vector<std::pair<uint64_t, ValueId>> results;
  for (const auto& [slot, o] : written_in_order(all)) {
    for (Frame& side : sides) {
      const auto seen = side.outer.find(slot);
      side.region.yields.push_back(seen == side.outer.end() ? o.before : seen->second.now);
    }
    const Value before = program.values[o.before];
    op.out.push_back(program.new_value(before.type, at, before.name));
    results.emplace_back(slot, op.out.back());
  }
  for (Frame& side : sides) op.regions.push_back(std::move(side.region));
  append(std::move(op));
  for (const auto& [slot, v] : results) write_if_alive(slot, v);
}

std::vector<ValueId> TraceState::fold(
    Opcode code, const std::vector<ValueId>& in, Attr attr, SourceLoc at,
    const std::function<std::vector<ValueId>(const std::vector<ValueId>& args)>& body) {
  check_open(at);
  Op op{code, at, in, {}, std::move(attr), {}};
  std::vector<ValueId> args;
  std::vector<Type> results;
  for (ValueId v : in) results.push_back(checked([&] { return infer_fold(op, type(v)); }));
  for (size_t k = 0; k < 2 * in.size(); ++k)
    args.push_back(program.new_value({type(in[k % in.size()]).dtype, {}}, at));
  std::vector<ValueId> yields;
  Frame f = in_frame(FrameKind::combiner, at, [&] { yields = body(args); });
  for (size_t k = 0; k < in.size(); ++k) {
    const Type want{type(in[k]).dtype, {}};
    if (!(type(yields[k]) == want))
      fail(at, fmt::format("the combiner gives {} for {}, wanted {}", to_string(type(yields[k])),
                           to_string(type(in[k])), to_string(want)));
    op.out.push_back(program.new_value(results[k], at));
  }
  f.region.args = args;
  f.region.yields = yields;
  op.regions.push_back(std::move(f.region));
  const std::vector<ValueId> out = op.out;
  append(std::move(op));
  return out;
}

// ---- the end

ValueId TraceState::resolve(ValueId v) const {
  for (auto it = same_as_.find(v); it != same_as_.end(); it = same_as_.find(v)) v = it->second;
  return v;
}

void TraceState::resolve(Region& r) const {
  for (ValueId& v : r.yields) v = resolve(v);
  for (Op& op : r.ops) {
    for (ValueId& v : op.in) v = resolve(v);
    for (Region& inner : op.regions) resolve(inner);
  }
}

void TraceState::check_finished(SourceLoc at) const {
  if (noted_) throw UserError(*noted_);
  const Frame& last = frames_.back();
  if (last.kind == FrameKind::loop && !last.loop)
    fail(last.at, "this while loop is not closed: 'break' leaves it, or finish() stands in it");
  if (frames_.size() > 1)
    fail(at, "finish() inside a loop or a branch", "call it after the loop's closing brace");
}

void TraceState::check_stored() const {
  std::vector<bool> stored(program.params.size(), false);
  walk(frames_[0].region, [&](const Op& op) {
    if (info(op.code).effect == Effect::write)
      stored[static_cast<size_t>(view_of(op)->param)] = true;
  });
  for (size_t k = 0; k < stored.size(); ++k)
    if (program.params[k].kind == ParamKind::out && !stored[k])
      fail(program.params[k].at,
           fmt::format("output '{}' is never stored to", program.params[k].name));
}

/// Programs have those that a call gives before the others; a kernel declares them where it likes.
void TraceState::sort_params() {
  std::vector<Param> sorted;
  std::vector<int> place(program.params.size());
  const auto take = [&](ParamKind first, ParamKind last) {
    for (size_t k = 0; k < place.size(); ++k) {
      if (program.params[k].kind < first || program.params[k].kind > last) continue;
      place[k] = static_cast<int>(sorted.size());
      sorted.push_back(program.params[k]);
    }
  };
  take(ParamKind::in, ParamKind::inout);
  take(ParamKind::workspace, ParamKind::workspace);
  take(ParamKind::scratch, ParamKind::scratch);
  if (program.ticket) program.ticket = place[static_cast<size_t>(*program.ticket)];
  program.params = std::move(sorted);
  walk(program, [&](Op& op) {
    if (View* view = view_of(op)) view->param = place[static_cast<size_t>(view->param)];
  });
}

Program TraceState::finish(SourceLoc at) {
  check_open(at);
  check_finished(at);
  if (program.grid.empty()) program.grid = {Expr(1)};
  check_stored();
  finished_ = true;
  program.body = std::move(frames_[0].region);
  resolve(program.body);
  sort_params();
  verify(program, "trace");
  Program done = std::move(program);
  program.name = done.name;
  return done;
}

}  // namespace tw
