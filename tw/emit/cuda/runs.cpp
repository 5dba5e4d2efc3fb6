#include <algorithm>
#include <fmt/format.h>

#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cpu/places.h"
#include "tw/emit/cuda/run_nest.h"

namespace tw::cuda {

using layout::ThreadValue;

bool is_own(const View& view) {
  bool own = false;
  for (const Expr& e : view.origin)
    for_each_symbol(e, [&](Symbol x) { own = own || x.kind == SymbolKind::pid; });
  return own;
}

namespace {

constexpr int64_t kAccessBytes = 16;

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

/// Reads the pack at the coordinates where the condition holds; else there is the pad of whole
/// runs, or zeros.
std::string read_pack(State& s, Expression& e, const ViewAttr& from, const Coords& coords,
                      const std::string& condition, const Run& run, const Packs& packs) {
  const std::string pack = pack_type(s, packs);
  const std::string read = fmt::format("{}<{}>({})", s.call("load_run"), pack,
                                       e.address(from.view.param, coords).pointer);
  if (condition.empty()) return read;
  return fmt::format("{} ? {} : {}{{{}}}", condition, read, pack,
                     run.whole ? pad_of(e, packs, from.pad) : "");
}

/// First all reads, so that they are on their way together; what lies outside reads as zeros.
/// Returns what a run must meet to lie inside.
std::string read_whole(State& s, const ViewAttr& from, const Run& run, const Tile& all,
                       const Packs& packs, Writer& out, const Op* gather = nullptr) {
  RunNest n(s, all.layout, from.view, run, gather);
  Expression& e = n.nest.expression();
  const std::string condition = n.condition();
  const std::string read = read_pack(s, e, from, n.coords, condition, run, packs);
  e.body(e.depth()).line(
      fmt::format("{}[{}] = {};", packs.name, quotient(s, n.first(all), run.count), read));
  n.nest.emit(out);
  return condition;
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
  const ViewAttr& from = load.as<ViewAttr>();
  const View& view = from.view;
  const Type& type = s.program().type(load.out[0]);
  const ThreadValue& l = s.placement.layout_of(type.shape);
  const Run run = *run_of(s, l, view);
  const size_t unit = *unit_tile_axis(s, view);
  const Packs packs{s.c.fresh("raw"), s.program().params[view.param].dtype, run.count};
  const int depth = e.loop_count() - 1;
  std::vector<std::string> reads;
  for (int64_t piece = 0; piece < run.pieces; ++piece) {
    Coords first = at;
    first[unit] = simplify(first[unit] + piece * run.count, s.c.facts);
    const Coords coords = tensor_place(s, view, first);
    const std::string condition =
        conjunction(inside_tile(s, l, first, run.count, unit), inside_run(s, view, coords, run));
    reads.push_back(read_pack(s, e, from, coords, condition, run, packs));
  }
  Writer& body = e.body(depth);
  body.line(fmt::format("{} {}[{}];", pack_type(s, packs), packs.name, run.pieces));
  for (int64_t piece = 0; piece < run.pieces; ++piece)
    body.line(fmt::format("{}[{}] = {};", packs.name, piece, reads[piece]));
  const std::string unpack =
      s.c.prelude.use(fmt::format("unpack_{}", name(packs.stored)), packs.stored, 1);
  return [&s, &e, packs, unpack, dtype = type.dtype](const Expr& index) {
    return Reg{fmt::format("{}({})", unpack, element_of(s, packs, index)), dtype, 1, all_loops(e),
               0};
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

}  // namespace tw::cuda
