#include <algorithm>
#include <fmt/format.h>

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

/// What a run's first element must meet for the whole run to lie inside.
std::string inside_run(State& s, const View& view, const Coords& coords, int64_t count) {
  const int unit = s.c.specialisation.params[view.param].unit_axis;
  std::string text;
  const auto add = [&](const std::string& t) { text += (text.empty() ? "" : " && ") + t; };
  const Param& p = s.program().params[view.param];
  for (size_t axis = 0; axis < coords.size(); ++axis) {
    const Expr last = static_cast<int>(axis) == unit
                          ? simplify(coords[axis] + (count - 1), s.c.facts)
                          : coords[axis];
    if (!prove_le(0, coords[axis], s.c.facts)) add(fmt::format("{} >= 0", s.c.text(coords[axis])));
    if (!prove_le(last + 1, p.dims[axis], s.c.facts))
      add(fmt::format("{} < {}", s.c.text(last), s.c.text(p.dims[axis])));
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

std::string both(const std::string& a, const std::string& b) {
  return a.empty() ? b : b.empty() ? a : a + " && " + b;
}

std::string stored_type(State& s, DType t) {
  if (t == b1) return s.c.prelude.type(u8);
  return s.c.prelude.type(register_type(t) == t ? t : cpu::unsigned_of_bytes(bytes(t)));
}

std::string pack_type(State& s, DType t, int64_t count) {
  s.c.prelude.outside("Pack");
  return fmt::format("Pack<{}, {}>", stored_type(s, t), count);
}

/// A nest over runs: the loop over a run's elements is left out, that over its pieces is not.
class RunNest {
 public:
  RunNest(State& s, const ThreadValue& l, const View& view, const Run& run)
      : s_(s), l_(l), view_(view), run_(run), nest(s, l, {}, {0}) {
    unit_ = *unit_tile_axis(s, view);
    at_ = nest.at();
    if (run.pieces > 1) {
      piece_ = nest.add_loop("piece", run.pieces, true);
      at_[unit_] = simplify(at_[unit_] + piece_ * run.count, s.c.facts);
    }
    coords = tensor_place(s, view, at_);
  }

  std::string condition() {
    return both(inside_tile(s_, l_, at_, run_.count, unit_),
                inside_run(s_, view_, coords, run_.count));
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
  State& s_;
  const ThreadValue& l_;
  const View& view_;
  const Run& run_;
  size_t unit_ = 0;
  Expr piece_ = 0;
  Coords at_;

 public:
  Nest nest;
  Coords coords;
};

}  // namespace

std::optional<Run> run_of(State& s, const ThreadValue& l, const View& view) {
  const ParamFacts& facts = s.c.specialisation.params[view.param];
  const DType t = s.program().params[view.param].dtype;
  const auto unit = unit_tile_axis(s, view);
  if (!facts.aligned || !unit || is_packed(t) || l.values.empty()) return std::nullopt;
  const ThreadValue::Mode& first = l.values[0];
  if (first.axis != static_cast<int>(*unit) || first.stride != 1) return std::nullopt;
  const int64_t most = kAccessBytes / bytes(t);
  int64_t count = 1;
  while (count * 2 <= most && first.extent % (count * 2) == 0) count *= 2;
  if (count < 2 || count * bytes(t) < 4) return std::nullopt;
  const Coords at = Nest(s, l, {}, {0}).at();
  const Coords coords = tensor_place(s, view, at);
  const int64_t step = divisor(coords[view.axes[*unit]], s.c.facts);
  if (step != 0 && step % count != 0) return std::nullopt;
  return Run{count, first.extent / count};
}

namespace {

/// First all reads, so that they are on their way together; what lies outside reads as zeros.
/// Returns what a run must meet to lie inside.
std::string read_whole(State& s, const View& view, const Run& run, const ThreadValue& l,
                       const Tile& all, const std::string& pack, Writer& out) {
  RunNest n(s, l, view, run);
  Expression& e = n.nest.expression();
  const std::string condition = n.condition();
  const std::string read =
      fmt::format("*(const {}*)({})", pack, e.address(view.param, n.coords).pointer);
  e.body(e.depth()).line(fmt::format(
      "{}[{}] = {};", all.name, quotient(s, n.first(all), run.count),
      condition.empty() ? read : fmt::format("{} ? {} : {}{{}}", condition, read, pack)));
  n.nest.emit(out);
  return condition;
}

/// Of the other runs the elements that lie inside, one by one, and the pad.
void read_partial(State& s, const Op& op, const Run& run, const ThreadValue& l, const Tile& t,
                  Writer& out) {
  const ViewAttr& a = op.as<ViewAttr>();
  RunNest n(s, l, a.view, run);
  Expression& e = n.nest.expression();
  n.nest.require(e.depth(), fmt::format("!({})", n.condition()));
  const Expr counter = n.nest.add_loop("v", run.count, true);
  n.nest.require(e.depth(), inside_tile(s, l, n.element_at(counter), 1, 0));
  const Reg single = e.load(a.view.param, n.element_coords(counter), a.pad);
  const Expr place = simplify(n.first(t) + counter, s.c.facts);
  e.body(e.depth()).line(fmt::format("{}[{}] = {};", t.name, s.c.text(place), single.text));
  n.nest.emit(out);
}

}  // namespace

void load_runs(State& s, const Op& op, const Run& run, Writer& out) {
  const View& view = op.as<ViewAttr>().view;
  const ValueId v = op.out[0];
  const DType stored = s.program().params[view.param].dtype;
  const ThreadValue l = s.placement.layout_of(s.program().type(v).shape);
  const std::string pack = pack_type(s, stored, run.count);
  const Tile all{s.c.fresh("raw"), s.program().type(v), l};
  out.line(fmt::format("{} {}[{}];", pack, all.name, l.registers() / run.count));
  const std::string condition = read_whole(s, view, run, l, all, pack, out);
  const Tile& t = s.declare(v, out);
  Nest n(s, l);
  Expression& e = n.expression();
  const std::string load = s.c.prelude.use("load", stored, 1);
  e.body(e.depth()).line(fmt::format("{} = {}(&{});", n.place(t), load,
                                     in_packs(s, all.name, n.index(all), run.count)));
  n.emit(out);
  if (!condition.empty()) read_partial(s, op, run, l, t, out);
}

namespace {

/// Runs that lie inside, each in one access. Returns what they must meet.
std::string store_whole(State& s, const Op& op, const Run& run, const ThreadValue& l,
                        const Tile& all, Writer& out) {
  const View& view = op.as<ViewAttr>().view;
  RunNest n(s, l, view, run);
  Expression& e = n.nest.expression();
  n.nest.require(0, s.first_copy(l));
  const std::string condition = n.condition();
  const std::string target = e.address(view.param, n.coords).pointer;
  e.body(e.depth()).line(
      fmt::format("{}{}({}, {}[{}]);", condition.empty() ? "" : fmt::format("if ({}) ", condition),
                  s.call("store_run"), target, all.name, quotient(s, n.first(all), run.count)));
  n.nest.emit(out);
  return condition;
}

/// Of the other runs the elements that lie inside, one by one.
void store_partial(State& s, const Op& op, const Run& run, const ThreadValue& l, const Tile& all,
                   Writer& out) {
  const View& view = op.as<ViewAttr>().view;
  RunNest n(s, l, view, run);
  Expression& e = n.nest.expression();
  n.nest.require(0, s.first_copy(l));
  n.nest.require(e.depth(), fmt::format("!({})", n.condition()));
  const std::string pack = quotient(s, n.first(all), run.count);
  const Expr counter = n.nest.add_loop("v", run.count, true);
  const Coords coords = n.element_coords(counter);
  std::string inside = inside_tile(s, l, n.element_at(counter), 1, 0);
  for (const cpu::Bound& b : cpu::open_bounds(s.c, view.param, coords)) {
    inside = both(inside, cpu::condition(s.c, b));
  }
  const std::string target = e.address(view.param, coords).pointer;
  n.nest.require(e.depth(), inside);
  e.body(e.depth()).line(
      fmt::format("*({}) = {}[{}].v[{}];", target, all.name, pack, s.c.text(counter)));
  n.nest.emit(out);
}

}  // namespace

void store_runs(State& s, const Op& op, const Run& run, Writer& out) {
  const View& view = op.as<ViewAttr>().view;
  const ValueId v = op.in[0];
  const Param& p = s.program().params[view.param];
  const ThreadValue l = s.placement.layout_of(s.program().type(v).shape);
  // The elements first, in registers, as memory holds them.
  const std::string pack = pack_type(s, p.dtype, run.count);
  const int64_t packs = l.registers() / run.count;
  const std::string raw = s.c.fresh("raw");
  const Tile all{raw, s.program().type(v), l};
  const std::string store = s.c.prelude.use("store", p.dtype, 1);
  out.line(fmt::format("{} {}[{}];", pack, raw, packs));
  {
    Nest n(s, l);
    Expression& e = n.expression();
    const Reg r = n.value(v);
    e.body(e.depth()).line(
        fmt::format("{}(&{}, {});", store, in_packs(s, all.name, n.index(all), run.count), r.text));
    if (s.guards(s.reads_of(v))) n.guard();
    n.emit(out);
  }
  const std::string condition = store_whole(s, op, run, l, all, out);
  if (!condition.empty()) store_partial(s, op, run, l, all, out);
}

}  // namespace tw::cuda
