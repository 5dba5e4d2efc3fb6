#include "tw/lang/trace.h"

#include <fmt/format.h>

#include "tw/ir/infer.h"
#include "tw/ir/print.h"
#include "tw/lang/impl/state.h"

namespace tw {
namespace {

void check_name(const TraceState& t, const char* what, const std::string& name, SourceLoc at) {
  if (!is_identifier(name))
    t.fail(at, fmt::format("'{}' names a {}, wanted letters, digits and _", name, what));
}

Index symbol(const std::shared_ptr<TraceState>& t, SymbolKind kind, int id) {
  return Index(Expr::symbol(kind, id), t);
}

}  // namespace

// ---- Trace

Trace::Trace(std::string name, SourceLoc at)
    : state_(std::make_shared<TraceState>(std::move(name), at)) {
  check_name(*state_, "program", state_->program.name, at);
}

Index Trace::dim(const std::string& name, DimOptions o, SourceLoc at) {
  TraceState& t = *state_;
  t.check_open(at);
  check_name(t, "dim", name, at);
  if (is_symbol_word(name))
    t.fail(at, fmt::format("'{}' cannot name a dim: text calls loops and instances so", name));
  if (o.multiple_of < 1)
    t.fail(at, fmt::format("dim '{}' promises a multiple of {}", name, o.multiple_of));
  std::vector<Dim>& dims = t.program.dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].name != name) continue;
    if (o.multiple_of != 1 && dims[d].multiple_of != o.multiple_of)
      t.fail(at, fmt::format("dim '{}' promises a multiple of {}, before of {}", name,
                             o.multiple_of, dims[d].multiple_of));
    return symbol(state_, SymbolKind::dim, static_cast<int>(d));
  }
  dims.push_back({name, o.multiple_of});
  return symbol(state_, SymbolKind::dim, static_cast<int>(dims.size()) - 1);
}

TensorRef Trace::param(const std::string& name, ParamKind kind, DType dtype,
                       const std::vector<Index>& dims, SourceLoc at) {
  TraceState& t = *state_;
  t.check_open(at);
  check_name(t, "parameter", name, at);
  for (const Param& p : t.program.params)
    if (p.name == name) t.fail(at, fmt::format("two parameters are named '{}'", name));
  if (dims.size() > kMaxRank)
    t.fail(at, fmt::format("'{}' has {} axes, more than {}", name, dims.size(), kMaxRank));
  Param p{name, kind, dtype, {}, at};
  for (const Index& d : dims) {
    const Expr e = t.host_expr(d, fmt::format("an extent of '{}'", name), at);
    if (!is_extent(e))
      t.fail(at,
             fmt::format("extent {} of '{}' is neither a dim nor a constant >= 0 nor cdiv(dim, "
                         "constant)",
                         to_string(e, [&](Symbol s) { return symbol_name(t.program, s); }), name),
             "give it a name of its own with k.dim()");
    p.dims.push_back(e);
  }
  t.program.params.push_back(std::move(p));
  return TensorRef(state_, static_cast<int>(t.program.params.size()) - 1);
}

TensorRef Trace::input(const std::string& name, DType t, const std::vector<Index>& dims,
                       SourceLoc at) {
  return param(name, ParamKind::in, t, dims, at);
}
TensorRef Trace::output(const std::string& name, DType t, const std::vector<Index>& dims,
                        SourceLoc at) {
  return param(name, ParamKind::out, t, dims, at);
}
TensorRef Trace::inout(const std::string& name, DType t, const std::vector<Index>& dims,
                       SourceLoc at) {
  return param(name, ParamKind::inout, t, dims, at);
}

TensorRef Trace::scratch(const std::string& name, DType t, const Extents& extents, SourceLoc at) {
  const std::vector<Index> dims(extents.begin(), extents.end());
  int64_t before = 0;
  for (const Param& p : state_->program.params)
    if (p.kind == ParamKind::scratch) before += scratch_bytes(p);
  state_->checked([&] { check_scratch({t, extents}, before, at); });
  return param(name, ParamKind::scratch, t, dims, at);
}

TensorRef Trace::workspace(const std::string& name, DType t, const std::vector<Index>& dims,
                           SourceLoc at) {
  if (is_packed(t))
    state_->fail(
        at,
        fmt::format("workspace '{}' of {} holds elements of less than a byte", name, tw::name(t)),
        "keep them in i8 or u8");
  return param(name, ParamKind::workspace, t, dims, at);
}

void Trace::in_order(SourceLoc at) {
  if (state_->program.ticket) state_->fail(at, "the instances are in order already");
  workspace("begun_instances", u64, {1}, at);
  state_->program.ticket = static_cast<int>(state_->program.params.size()) - 1;
}

static void set_grid(TraceState& t, std::initializer_list<Index> extents, SourceLoc at) {
  t.check_open(at);
  if (!t.program.grid.empty()) t.fail(at, "the program has a grid already");
  std::vector<Expr> grid;
  for (const Index& e : extents) grid.push_back(t.host_expr(e, "a grid extent", at));
  t.program.grid = std::move(grid);
}

std::array<Index, 1> Trace::grid(const Index& x, SourceLoc at) {
  set_grid(*state_, {x}, at);
  return {symbol(state_, SymbolKind::pid, 0)};
}
std::array<Index, 2> Trace::grid(const Index& x, const Index& y, SourceLoc at) {
  set_grid(*state_, {x, y}, at);
  return {symbol(state_, SymbolKind::pid, 0), symbol(state_, SymbolKind::pid, 1)};
}
std::array<Index, 3> Trace::grid(const Index& x, const Index& y, const Index& z, SourceLoc at) {
  set_grid(*state_, {x, y, z}, at);
  return {symbol(state_, SymbolKind::pid, 0), symbol(state_, SymbolKind::pid, 1),
          symbol(state_, SymbolKind::pid, 2)};
}

Tile Trace::full(DType t, const Extents& shape, Constant value, SourceLoc at) {
  const Type type{t, shape};
  state_->checked([&] { check_type(type, at); });
  const auto number = value.as(t);
  if (!number)
    state_->fail(at, fmt::format("constant {} does not fit {}", value.text(), to_string(type)));
  return Tile(state_, state_->constant(t, shape, *number, at));
}

Tile Trace::zeros(DType t, const Extents& shape, SourceLoc at) { return full(t, shape, 0, at); }

Tile Trace::iota(const Extents& shape, int axis, SourceLoc at) {
  const Type type{i64, shape};
  state_->checked([&] { check_type(type, at); });
  if (axis < 0 || static_cast<size_t>(axis) >= shape.size())
    state_->fail(at, fmt::format("iota along axis {} of {}", axis, to_string(type)));
  return Tile(state_, state_->emit(Opcode::iota, {}, AxisAttr{axis}, type, at));
}

void Trace::tell(Opcode code, const Tile& x, const std::string& text, SourceLoc at) {
  TraceState& t = *state_;
  if (x.trace() != state_) t.fail(at, "the tile belongs to another program");
  t.check_open(at);
  const ValueId v = x.read(at);
  if (code == Opcode::assert_) t.checked([&] { check_assert(t.type(v), at); });
  t.append({code, at, {v}, {}, MessageAttr{text}, {}});
}

void Trace::check(const Tile& mask, const std::string& message, SourceLoc at) {
  tell(Opcode::assert_, mask, message, at);
}
void Trace::print(const std::string& label, const Tile& x, SourceLoc at) {
  tell(Opcode::print, x, label, at);
}

Trace::Loop Trace::range(const Index& hi, SourceLoc at) { return range(0, hi, 1, at); }
Trace::Loop Trace::range(const Index& lo, const Index& hi, SourceLoc at) {
  return range(lo, hi, 1, at);
}
Trace::Loop Trace::range(const Index& lo, const Index& hi, const Index& step, SourceLoc at) {
  TraceState& t = *state_;
  t.check_open(at);
  LoopAttr loop{0, t.expr(lo, at), t.expr(hi, at), t.expr(step, at)};
  if (bounds(loop.step, facts_of(t.program)).lo < 1)
    t.fail(at,
           fmt::format("the step {} of a loop may be less than 1",
                       to_string(loop.step, [&](Symbol s) { return symbol_name(t.program, s); })),
           "write max(step, 1)");
  return Loop(state_, loop, at);
}

void Trace::when(const Cond& cond, const std::function<void()>& then,
                 const std::function<void()>& otherwise, SourceLoc at) {
  TraceState& t = *state_;
  const CondAttr attr{cond.kind(), t.expr(cond.a(), at), t.expr(cond.b(), at)};
  t.branch(attr, at, then, otherwise);
}

Program Trace::finish(SourceLoc at) { return state_->finish(at); }

Trace::Scope::Scope(Trace& k, std::string name) : trace_(k.state_) {
  trace_->scopes.push_back(std::move(name));
}
Trace::Scope::~Scope() { trace_->scopes.pop_back(); }

// ---- loops

static const char* left_by(bool error) {
  return error ? "an error left this loop while it was traced"
               : "'break' or 'return' leaves a traced loop";
}

Trace::Loop::Iterator::Iterator(std::shared_ptr<TraceState> trace, LoopAttr loop, SourceLoc at)
    : trace_(std::move(trace)),
      frame_(trace_->open_loop(loop, at)),
      counter_(symbol(trace_, SymbolKind::loop, trace_->last_loop())),
      at_(at),
      errors_(std::uncaught_exceptions()) {}

void Trace::Loop::Iterator::operator++() {
  open_ = false;
  trace_->close_loop(frame_);
}

Trace::Loop::Iterator::~Iterator() {
  if (!open_) return;
  trace_->abandon(frame_, at_, left_by(std::uncaught_exceptions() > errors_));
}

While::While(Trace& k, SourceLoc at)
    : trace_(k.state_), at_(at), errors_(std::uncaught_exceptions()) {
  trace_->check_open(at);
}

bool While::operator()(const Tile& condition, SourceLoc at) {
  TraceState& t = *trace_;
  if (condition.trace() != trace_) t.fail(at, "the condition belongs to another program");
  if (stage_ == Stage::after)
    t.fail(at, "this While has traced its loop", "make one for each loop");
  const ValueId go = condition.read(at);
  if (const Type type = t.type(go); !(type == Type{b1, {}}))
    t.fail(at, fmt::format("the condition of a loop is {}, wanted b1[]", to_string(type)),
           "any() or all() of a mask");
  if (stage_ == Stage::before) {
    frame_ = t.open_while(go, at);
    stage_ = Stage::inside;
    return true;
  }
  stage_ = Stage::after;
  t.close_loop(frame_, go);
  return false;
}

While::~While() {
  if (stage_ == Stage::inside)
    trace_->abandon(frame_, at_, left_by(std::uncaught_exceptions() > errors_));
}

// ---- tensors

TensorRef TensorRef::operator[](const Index& i) const {
  TensorRef r = *this;
  r.fixed_.push_back(i);
  return r;
}

TileView TensorRef::view(const std::vector<Index>& at, const Extents& extents, bool scaled,
                         const char* what, SourceLoc loc) const {
  TraceState& t = *trace_;
  t.check_open(loc);
  const Param& p = t.program.params[static_cast<size_t>(param_)];
  const size_t rank = p.dims.size();
  if (fixed_.size() > rank)
    t.fail(loc, fmt::format("'{}' has {} axes, [] fixes {}", p.name, rank, fixed_.size()));
  if (at.size() != rank - fixed_.size() || extents.size() != at.size())
    t.fail(loc,
           fmt::format("{}() of '{}', which has {} axes here, got {} coordinates and {} extents",
                       what, p.name, rank - fixed_.size(), at.size(), extents.size()));
  const Type type{p.dtype, extents};
  t.checked([&] { check_type(type, loc); });
  TileView v{trace_, {param_, {}, {}}, type};
  for (const Index& i : fixed_) v.view.origin.push_back(t.expr(i, loc));
  size_t axis = 0;
  for (const Index& i : at) {
    v.view.axes.push_back(static_cast<int>(fixed_.size() + axis));
    v.view.origin.push_back(scaled ? t.expr(i, loc) * Expr(extents[axis]) : t.expr(i, loc));
    ++axis;
  }
  return v;
}

TileView TensorRef::tile(const std::vector<Index>& at, const Extents& extents,
                         SourceLoc loc) const {
  return view(at, extents, true, "tile", loc);
}

TileView TensorRef::window(const std::vector<Index>& offset, const Extents& extents,
                           SourceLoc loc) const {
  return view(offset, extents, false, "window", loc);
}

}  // namespace tw
