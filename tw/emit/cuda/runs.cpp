#include <algorithm>
#include <fmt/format.h>

#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cpu/places.h"
#include "tw/emit/cuda/statements.h"

namespace tw::cuda {

using layout::ThreadValue;

namespace {

constexpr int64_t kAccessBytes = 16;

/// The tile axis that lies along the tensor's unit axis.
std::optional<size_t> unit_tile_axis(const State& s, const View& view) {
  const int unit = s.c.specialisation.params[view.param].unit_axis;
  const auto it = std::ranges::find(view.axes, unit);
  if (unit < 0 || it == view.axes.end()) return std::nullopt;
  return static_cast<size_t>(it - view.axes.begin());
}

std::string both(const std::string& a, const std::string& b) {
  return a.empty() ? b : b.empty() ? a : a + " && " + b;
}

/// What a run's first element must meet for the whole run to lie inside. Where rows are whole runs
/// the others lie outside.
std::string inside_run(State& s, const View& view, const Coords& coords, const Run& run) {
  const int unit = s.c.specialisation.params[view.param].unit_axis;
  std::string text;
  const Param& p = s.program().params[view.param];
  for (size_t axis = 0; axis < coords.size(); ++axis) {
    const bool along = static_cast<int>(axis) == unit && !run.whole;
    const Expr last = along ? simplify(coords[axis] + (run.count - 1), s.c.facts) : coords[axis];
    const cpu::Bound first{coords[axis], p.dims[axis], !prove_le(0, coords[axis], s.c.facts),
                           false};
    const cpu::Bound end{last, p.dims[axis], false, !prove_le(last + 1, p.dims[axis], s.c.facts)};
    if (first.low) text = both(text, cpu::condition(s.c, first));
    if (end.high) text = both(text, cpu::condition(s.c, end));
  }
  return text;
}

/// Holes of the layout along the axes but the run's own, which is cut in whole runs.
std::string inside_tile(State& s, const ThreadValue& l, const Coords& at, int64_t count,
                        size_t unit) {
  std::string text;
  for (size_t a = 0; a < at.size(); ++a) {
    if (!l.has_holes(a)) continue;
    const Expr last = a == unit ? simplify(at[a] + (count - 1), s.c.facts) : at[a];
    text += fmt::format("{}{} < {}", text.empty() ? "" : " && ", s.c.text(last), l.tile[a]);
  }
  return text;
}

std::string stored_type(State& s, DType t) {
  if (t == b1) return s.c.prelude.type(u8);
  return s.c.prelude.type(register_type(t) == t ? t : cpu::unsigned_of_bytes(bytes(t)));
}

/// Packs of a run each, as memory holds them: words where elements are smaller.
struct Packs {
  std::string name;
  DType stored;
  int64_t count;  ///< elements of one
  int64_t per_word() const { return std::max<int64_t>(1, 4 / bytes(stored)); }
};

std::string pack_type(State& s, const Packs& p) {
  s.c.prelude.outside("Pack");
  return fmt::format("Pack<{}, {}>", p.per_word() > 1 ? "u32" : stored_type(s, p.stored),
                     p.count / p.per_word());
}

/// `stages`: of so many later iterations of a loop. Those may not be there: without a value ptxas
/// would keep such registers from one instance to the next.
Packs declare_packs(State& s, DType stored, int64_t count, const ThreadValue& l, Writer& out,
                    int64_t stages = 0) {
  Packs p{s.c.fresh("raw"), stored, count};
  out.line(fmt::format("{} {}{}[{}]{};", pack_type(s, p), p.name,
                       stages > 1 ? fmt::format("[{}]", stages) : "", l.registers() / count,
                       stages > 0 ? " = {}" : ""));
  return p;
}

/// The word that the element of that number among all is part of.
std::string word_of(State& s, const Packs& p, const Expr& index) {
  const Expr in_pack = simplify(mod(index, p.count), s.c.facts);
  return fmt::format("{}[{}].v[{}]", p.name, quotient(s, index, p.count),
                     quotient(s, in_pack, p.per_word()));
}

/// The element.
std::string element_of(State& s, const Packs& p, const Expr& index) {
  if (p.per_word() == 1) return in_packs(s, p.name, index, p.count);
  return fmt::format("{}<{}>({}, {})", s.call("part"), stored_type(s, p.stored),
                     word_of(s, p, index), remainder(s, index, p.per_word()));
}

/// x, an element as memory holds it, where it stands in its word.
std::string shifted(State& s, const Packs& p, const Expr& index, const std::string& x) {
  return fmt::format("(u32)({}){} << {} * ({})",
                     s.c.prelude.type(cpu::unsigned_of_bytes(bytes(p.stored))), x,
                     8 * bytes(p.stored), remainder(s, index, p.per_word()));
}

/// A nest over runs: the loop over a run's elements is left out, that over its pieces is not.
/// `gather`: what says where they lie, in place of the view.
class RunNest {
 public:
  RunNest(State& s, const ThreadValue& l, const View& view, const Run& run,
          const Op* gather = nullptr)
      : s_(s), l_(l), view_(view), run_(run), nest(s, l, {}, {0}) {
    unit_ = static_cast<size_t>(l.values[0].axis);
    at_ = nest.at();
    if (run.pieces > 1) {
      piece_ = nest.add_loop("piece", run.pieces, true);
      at_[unit_] = simplify(at_[unit_] + piece_ * run.count, s.c.facts);
    }
    coords = gather == nullptr ? tensor_place(s, view, at_) : place(*gather);
  }

  std::string condition() {
    const std::string inside = both(guard_, inside_run(s_, view_, coords, run_));
    return both(inside_tile(s_, l_, at_, run_.count, unit_), inside);
  }
  /// The number of the run's first element among the registers of a tile of this layout.
  Expr first(const Tile& t) const { return nest.index(t) + piece_ * run_.count; }
  /// Coordinates of element `v` of the run, a symbol.
  Coords element_coords(const Expr& v) const {
    Coords r = coords;
    r[view_.axes[unit_]] = simplify(r[view_.axes[unit_]] + v, s_.c.facts);
    return r;
  }
  Coords element_at(const Expr& v) const {
    Coords r = at_;
    r[unit_] = simplify(r[unit_] + v, s_.c.facts);
    return r;
  }

 private:
  Coords place(const Op& gather) {
    Expression& e = nest.expression();
    cpu::Places p = cpu::places_of(e, gather, at_);
    if (p.inside) guard_ = p.inside->text;
    if (const auto mask = place_operands(gather).mask)
      guard_ = both(guard_, e.value(*mask, at_).text);
    return p.at;
  }

  State& s_;
  const ThreadValue& l_;
  const View& view_;
  const Run& run_;
  std::string guard_;  ///< what data says
  size_t unit_ = 0;
  Expr piece_ = 0;
  Coords at_;

 public:
  Nest nest;
  Coords coords;
};

}  // namespace

bool is_own(const View& view) {
  bool own = false;
  for (const Expr& e : view.origin)
    for_each_symbol(e, [&](Symbol x) { own = own || x.kind == SymbolKind::pid; });
  return own;
}

namespace {

/// The most neighbours that one access takes of so many registers side by side; 1: too few.
int64_t run_length(DType t, int64_t registers) {
  const int64_t most = kAccessBytes / bytes(t);
  int64_t count = 1;
  while (count * 2 <= most && registers % (count * 2) == 0) count *= 2;
  return count * bytes(t) < 4 ? 1 : count;
}

/// Whether the coordinate v runs with the elements of a run along axis `a`, from multiples of
/// `count`.
bool runs_along(State& s, const ThreadValue& l, ValueId v, size_t a, int64_t count) {
  Nest n(s, l, {}, {0});
  const Symbol step = s.c.new_symbol("element", SymbolFact{{0, count - 1}, 1});
  Coords moved = n.at();
  moved[a] = moved[a] + Expr::symbol(step);
  const auto first = cpu::as_index(n.expression(), v, n.at());
  const auto x = cpu::as_index(n.expression(), v, moved);
  if (!first || !x || cpu::slope(*x, step, s.c.facts) != 1) return false;
  return divisor(*first, s.c.facts) % count == 0;
}

}  // namespace

std::optional<Run> gather_run_of(State& s, const Op& op) {
  const View& view = op.as<PlaceAttr>().view;
  const ParamFacts& facts = s.c.specialisation.params[view.param];
  const DType t = s.program().params[view.param].dtype;
  const ThreadValue& l = s.placement.layout_of(s.program().type(op.out[0]).shape);
  if (!facts.aligned || !facts.whole || is_packed(t) || l.values.empty()) return std::nullopt;
  const ThreadValue::Mode& first = l.values[0];
  const int64_t count = run_length(t, first.extent);
  if (first.axis < 0 || first.stride != 1 || count < 2) return std::nullopt;
  const auto a = static_cast<size_t>(first.axis);
  if (l.tile[a] % count != 0) return std::nullopt;
  const PlaceOperands in = place_operands(op);
  const auto still = [&](ValueId v) { return s.program().type(v).shape[a] == 1; };
  if (in.mask && !still(*in.mask)) return std::nullopt;
  bool along = false;
  for (size_t k = 0; k < in.at.size(); ++k) {
    const bool unit = view.axes[k] == facts.unit_axis;
    along = along || unit;
    if (unit ? !runs_along(s, l, in.at[k], a, count) : !still(in.at[k])) return std::nullopt;
  }
  return along ? std::optional(Run{count, first.extent / count, true}) : std::nullopt;
}

std::optional<Run> run_of(State& s, const ThreadValue& l, const View& view) {
  const ParamFacts& facts = s.c.specialisation.params[view.param];
  const DType t = s.program().params[view.param].dtype;
  const auto unit = unit_tile_axis(s, view);
  if (!facts.aligned || !unit || is_packed(t) || l.values.empty()) return std::nullopt;
  const ThreadValue::Mode& first = l.values[0];
  if (first.axis != static_cast<int>(*unit) || first.stride != 1) return std::nullopt;
  const int64_t count = run_length(t, first.extent);
  if (count < 2) return std::nullopt;
  const Coords at = Nest(s, l, {}, {0}).at();
  const Coords coords = tensor_place(s, view, at);
  const int64_t step = divisor(coords[view.axes[*unit]], s.c.facts);
  if (step != 0 && step % count != 0) return std::nullopt;
  return Run{count, first.extent / count, facts.whole && l.tile[*unit] % count == 0};
}

namespace {

/// The elements of a pack of pads; nothing where they are zeros.
std::string pad_of(Expression& e, const Packs& p, const Number& pad) {
  std::string one = cpu::stored_literal(e, p.stored, pad);
  if (one == cpu::stored_literal(e, p.stored, Number{})) return "";
  if (p.per_word() > 1) {
    one = fmt::format("({}){} * {:#x}u", name(cpu::unsigned_of_bytes(bytes(p.stored))), one,
                      p.per_word() == 2 ? 0x10001u : 0x1010101u);
  }
  std::string all = one;
  for (int64_t k = 1; k < p.count / p.per_word(); ++k) all += ", " + one;
  return all;
}

/// First all reads, so that they are on their way together; what lies outside reads as zeros.
/// Returns what a run must meet to lie inside.
std::string read_whole(State& s, const ViewAttr& from, const Run& run, const Tile& all,
                       const Packs& packs, Writer& out, const Op* gather = nullptr) {
  const auto& [view, pad] = from;
  RunNest n(s, all.layout, view, run, gather);
  Expression& e = n.nest.expression();
  const std::string condition = n.condition();
  const std::string pack = pack_type(s, packs);
  const std::string filled = run.whole ? pad_of(e, packs, pad) : "";
  const std::string read =
      fmt::format("{}<{}>({})", s.call("load_run"), pack, e.address(view.param, n.coords).pointer);
  e.body(e.depth()).line(fmt::format(
      "{}[{}] = {};", packs.name, quotient(s, n.first(all), run.count),
      condition.empty() ? read : fmt::format("{} ? {} : {}{{{}}}", condition, read, pack, filled)));
  n.nest.emit(out);
  return condition;
}

/// Whether an element lies in its tensor, as text; empty where it is known to.
std::string inside_tensor(State& s, const View& view, const Coords& coords) {
  std::string text;
  for (const cpu::Bound& b : cpu::open_bounds(s.c, view.param, coords)) {
    text = both(text, cpu::condition(s.c, b));
  }
  return text;
}

/// Of the other runs the elements that lie inside, one by one, and the pad. They lie as in memory,
/// so that all become values late.
void read_partial(State& s, const Op& op, const Run& run, const Tile& all, const Packs& packs,
                  Writer& out) {
  const ViewAttr& a = op.as<ViewAttr>();
  RunNest n(s, all.layout, a.view, run);
  Expression& e = n.nest.expression();
  n.nest.require(e.depth(), fmt::format("!({})", n.condition()));
  const Expr first = n.first(all);
  const Expr counter = n.nest.add_loop("v", run.count, true);
  n.nest.require(e.depth(), inside_tile(s, all.layout, n.element_at(counter), 1, 0));
  const Coords coords = n.element_coords(counter);
  std::string x = "*(" + e.address(a.view.param, coords).pointer + ")";
  if (const std::string inside = inside_tensor(s, a.view, coords); !inside.empty())
    x = fmt::format("({} ? {} : {})", inside, x, cpu::stored_literal(e, packs.stored, a.pad));
  const Expr index = simplify(first + counter, s.c.facts);
  e.body(e.depth()).line(
      packs.per_word() == 1
          ? fmt::format("{} = {};", in_packs(s, packs.name, index, packs.count), x)
          : fmt::format("{} |= {};", word_of(s, packs, index), shifted(s, packs, index, x)));
  n.nest.emit(out);
}

}  // namespace

std::string declare_runs(State& s, const Op& op, const Run& run, int64_t stages, Writer& out) {
  const DType stored = s.program().params[view_of(op)->param].dtype;
  const ThreadValue l = s.placement.layout_of(s.program().type(op.out[0]).shape);
  return declare_packs(s, stored, run.count, l, out, stages).name;
}

bool read_runs(State& s, const Op& op, const ViewAttr& from, const Run& run, const std::string& raw,
               Writer& out) {
  const Type& type = s.program().type(op.out[0]);
  const Tile all{raw, type, s.placement.layout_of(type.shape)};
  const Packs packs{raw, s.program().params[from.view.param].dtype, run.count};
  return !read_whole(s, from, run, all, packs, out).empty() && !run.whole;
}

void unpack_runs(State& s, const Op& op, const Run& run, const std::string& raw, bool partial,
                 Writer& out) {
  const ValueId v = op.out[0];
  const DType stored = s.program().params[view_of(op)->param].dtype;
  const ThreadValue l = s.placement.layout_of(s.program().type(v).shape);
  const Packs packs{raw, stored, run.count};
  const Tile all{raw, s.program().type(v), l};
  if (partial) read_partial(s, op, run, all, packs, out);
  const Tile& t = s.declare(v, out);
  Nest n(s, l);
  Expression& e = n.expression();
  const std::string unpack = s.c.prelude.use(fmt::format("unpack_{}", name(stored)), stored, 1);
  e.body(e.depth()).line(
      fmt::format("{} = {}({});", n.place(t), unpack, element_of(s, packs, n.index(all))));
  n.emit(out);
}

bool is_late(const State& s, const Op& load, const Run& run) {
  const ValueId v = load.out[0];
  const View& view = load.as<ViewAttr>().view;
  return run.whole && !s.in_memory(v) && s.placement.used_once_here(v) && !is_own(view) &&
         s.program().params[view.param].kind == ParamKind::in;
}

std::function<Reg(const Expr& index)> read_late(State& s, Expression& e, const Op& load,
                                                const Coords& at) {
  const auto& [view, pad] = load.as<ViewAttr>();
  const Type& type = s.program().type(load.out[0]);
  const ThreadValue& l = s.placement.layout_of(type.shape);
  const Run run = *run_of(s, l, view);
  const size_t unit = *unit_tile_axis(s, view);
  const Packs packs{s.c.fresh("raw"), s.program().params[view.param].dtype, run.count};
  const std::string pack = pack_type(s, packs);
  const int depth = e.loop_count() - 1;
  std::vector<std::string> reads;
  for (int64_t piece = 0; piece < run.pieces; ++piece) {
    Coords first = at;
    first[unit] = simplify(first[unit] + piece * run.count, s.c.facts);
    const Coords coords = tensor_place(s, view, first);
    const std::string condition =
        both(inside_tile(s, l, first, run.count, unit), inside_run(s, view, coords, run));
    const std::string read =
        fmt::format("{}<{}>({})", s.call("load_run"), pack, e.address(view.param, coords).pointer);
    reads.push_back(condition.empty() ? read
                                      : fmt::format("{} ? {} : {}{{{}}}", condition, read, pack,
                                                    pad_of(e, packs, pad)));
  }
  Writer& body = e.body(depth);
  body.line(fmt::format("{} {}[{}];", pack, packs.name, run.pieces));
  for (int64_t piece = 0; piece < run.pieces; ++piece)
    body.line(fmt::format("{}[{}] = {};", packs.name, piece, reads[piece]));
  const std::string unpack =
      s.c.prelude.use(fmt::format("unpack_{}", name(packs.stored)), packs.stored, 1);
  return [&s, &e, packs, unpack, dtype = type.dtype](const Expr& index) {
    return Reg{fmt::format("{}({})", unpack, element_of(s, packs, index)), dtype, 1,
               (1u << e.loop_count()) - 1, 0};
  };
}

void load_runs(State& s, const Op& op, const Run& run, Writer& out) {
  const std::string raw = declare_runs(s, op, run, 0, out);
  const bool partial = read_runs(s, op, op.as<ViewAttr>(), run, raw, out);
  unpack_runs(s, op, run, raw, partial, out);
}

void gather_runs(State& s, const Op& op, const Run& run, Writer& out) {
  const PlaceAttr& a = op.as<PlaceAttr>();
  const Type& type = s.program().type(op.out[0]);
  const std::string raw = declare_runs(s, op, run, 0, out);
  const Packs packs{raw, s.program().params[a.view.param].dtype, run.count};
  const Tile all{raw, type, s.placement.layout_of(type.shape)};
  read_whole(s, {a.view, a.pad}, run, all, packs, out, &op);
  unpack_runs(s, op, run, raw, false, out);
}

namespace {

/// Runs that lie inside, each in one access. Returns what they must meet.
std::string store_whole(State& s, const Op& op, const Run& run, const Tile& all, Writer& out) {
  const View& view = op.as<ViewAttr>().view;
  RunNest n(s, all.layout, view, run);
  Expression& e = n.nest.expression();
  n.nest.require(0, s.first_copy(all.layout));
  const std::string condition = n.condition();
  const std::string target = e.address(view.param, n.coords).pointer;
  e.body(e.depth()).line(
      fmt::format("{}{}({}, {}[{}]);", condition.empty() ? "" : fmt::format("if ({}) ", condition),
                  s.call("store_run"), target, all.name, quotient(s, n.first(all), run.count)));
  n.nest.emit(out);
  return condition;
}

/// Of the other runs the elements that lie inside, one by one.
void store_partial(State& s, const Op& op, const Run& run, const Tile& all, const Packs& packs,
                   Writer& out) {
  const View& view = op.as<ViewAttr>().view;
  const ThreadValue& l = all.layout;
  RunNest n(s, l, view, run);
  Expression& e = n.nest.expression();
  n.nest.require(0, s.first_copy(l));
  n.nest.require(e.depth(), fmt::format("!({})", n.condition()));
  const Expr first = n.first(all);
  const Expr counter = n.nest.add_loop("v", run.count, true);
  const Coords coords = n.element_coords(counter);
  const std::string inside =
      both(inside_tile(s, l, n.element_at(counter), 1, 0), inside_tensor(s, view, coords));
  const std::string target = e.address(view.param, coords).pointer;
  n.nest.require(e.depth(), inside);
  e.body(e.depth()).line(fmt::format("*({}) = {};", target,
                                     element_of(s, packs, simplify(first + counter, s.c.facts))));
  n.nest.emit(out);
}

}  // namespace

namespace {

/// The f32 that a cast rounds to the tensor's type where the value is used nowhere else.
std::optional<ValueId> rounded_of(const State& s, ValueId v, DType stored) {
  const Op* op = s.c.def[v];
  if (op == nullptr || op->code != Opcode::cast || s.placement.kept(*op)) return std::nullopt;
  const CastAttr& how = op->as<CastAttr>();
  const bool floats = stored == bf16 || stored == f16 || stored == e4m3 || stored == e5m2;
  if (!floats || how.rounding != Rounding::RN || how.saturate ||
      s.program().type(op->in[0]).dtype != f32)
    return std::nullopt;
  return op->in[0];
}

/// Joins elements in registers to words by a function of the first one's address.
void join_words(State& s, const Packs& packs, const std::string& function,
                const std::string& elements, int64_t registers, Writer& out) {
  const int64_t each = packs.per_word(), words = registers / each;
  const Symbol word = s.c.new_loop("word", words);
  const std::string k = s.c.symbol_text(word);
  out.line("#pragma unroll");
  out.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", k, words));
  out.line(fmt::format("{} = {}({} + {}*{});",
                       in_packs(s, packs.name, Expr::symbol(word), packs.count / each), function,
                       elements, k, each));
  out.close();
}

/// The elements in registers, as memory holds them: rounded together where a cast makes them.
void pack_elements(State& s, ValueId v, const Tile& all, const Packs& packs, Writer& out) {
  const ThreadValue& l = all.layout;
  const bool words = packs.per_word() > 1;
  const auto rounded = rounded_of(s, v, packs.stored);
  const Tile wide{rounded ? s.c.fresh("wide") : "", {f32, all.type.shape}, l};
  std::string narrow = packs.name;
  if (rounded) {
    s.declare_registers(wide, out);
  } else if (words) {
    narrow = s.c.fresh("narrow");
    out.line(fmt::format("{} {}[{}];", stored_type(s, packs.stored), narrow, l.registers()));
  }
  Nest n(s, l);
  Expression& e = n.expression();
  if (rounded) {
    write_register(n, n.value(*rounded), wide);
  } else {
    const Expr index = n.index(all);
    const std::string store = s.c.prelude.use("store", packs.stored, 1);
    const Reg r = n.value(v);
    const std::string place = words ? fmt::format("{}[{}]", narrow, s.c.text(index))
                                    : in_packs(s, packs.name, index, packs.count);
    e.body(e.depth()).line(fmt::format("{}(&{}, {});", store, place, r.text));
  }
  if (s.guards(s.reads_of(v))) n.guard();
  n.emit(out);
  if (rounded) {
    join_words(s, packs, s.c.prelude.use("narrow", packs.stored, 1), wide.name, l.registers(), out);
  } else if (words) {
    join_words(s, packs, s.call("join"), narrow, l.registers(), out);
  }
}

}  // namespace

void store_runs(State& s, const Op& op, const Run& run, Writer& out) {
  const View& view = op.as<ViewAttr>().view;
  const ValueId v = op.in[0];
  const Type& type = s.program().type(v);
  const ThreadValue l = s.placement.layout_of(type.shape);
  const Packs packs = declare_packs(s, s.program().params[view.param].dtype, run.count, l, out);
  const Tile all{packs.name, type, l};
  pack_elements(s, v, all, packs, out);
  const std::string condition = store_whole(s, op, run, all, out);
  if (!condition.empty() && !run.whole) store_partial(s, op, run, all, packs, out);
}

}  // namespace tw::cuda
