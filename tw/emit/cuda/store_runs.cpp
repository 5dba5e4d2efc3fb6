#include <cmath>
#include <fmt/format.h>

#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cuda/run_nest.h"

namespace tw::cuda {

using layout::ThreadValue;

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
      conjunction(inside_tile(s, l, n.element_at(counter), 1, 0), inside_tensor(s, view, coords));
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

/// x where v is min(max(x, -largest), largest), in any order, and of no other use.
std::optional<ValueId> clamped_of(const State& s, ValueId v, DType stored) {
  const double most = largest(stored);
  for (const auto& [code, bound] : {std::pair{Opcode::min, most}, {Opcode::max, -most}}) {
    const Op* outer = s.c.def[v];
    if (outer == nullptr || outer->code != code || s.placement.kept(*outer)) continue;
    for (const size_t k : {0, 1}) {
      const auto limit = cpu::constant_of(s.c, outer->in[k]);
      const Op* inner = s.c.def[outer->in[1 - k]];
      const Opcode other = code == Opcode::min ? Opcode::max : Opcode::min;
      if (!limit || limit->as_double() != bound || inner == nullptr || inner->code != other ||
          s.placement.kept(*inner))
        continue;
      for (const size_t j : {0, 1}) {
        const auto opposite = cpu::constant_of(s.c, inner->in[j]);
        if (opposite && opposite->as_double() == -bound) return inner->in[1 - j];
      }
    }
  }
  return std::nullopt;
}

/// How words are made of elements in f32.
struct Rounding32 {
  ValueId x;
  std::string function;
  std::optional<ValueId> where;  ///< elsewhere they are zeros
};

/// Where the stored value is a cast's. A condition that holds for whole runs chooses words.
std::optional<Rounding32> rounding_of(const State& s, ValueId v, DType stored,
                                      const ThreadValue& l) {
  const auto rounded = rounded_of(s, v, stored);
  if (!rounded) return std::nullopt;
  Rounding32 r{*rounded, "narrow", std::nullopt};
  const Op* op = s.c.def[r.x];
  if (op != nullptr && op->code == Opcode::where && !s.placement.kept(*op)) {
    const auto other = cpu::constant_of(s.c, op->in[2]);
    const Extents& shape = s.program().type(op->in[0]).shape;
    const bool zero = other && other->as_double() == 0 && !std::signbit(other->as_double());
    if (zero && shape[l.values[0].axis] == 1) r = {op->in[1], r.function, op->in[0]};
  }
  if (stored != e4m3) return r;
  if (const auto x = clamped_of(s, r.x, stored)) r = {*x, "narrow_clamped", r.where};
  return r;
}

/// Joins elements in registers to words by a function of the first one's address; those of runs
/// where `where` does not hold are zeros.
void join_words(State& s, const Packs& packs, const std::string& function,
                const std::string& elements, const Tile& all, std::optional<ValueId> where,
                Writer& out) {
  const int64_t each = packs.per_word();
  if (!where) {
    const int64_t words = all.layout.registers() / each;
    const Symbol word = s.c.new_loop("word", words);
    const std::string k = s.c.symbol_text(word);
    out.line("#pragma unroll");
    out.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", k, words));
    out.line(fmt::format("{} = {}({} + {}*{});",
                         in_packs(s, packs.name, Expr::symbol(word), packs.count / each), function,
                         elements, k, each));
    out.close();
    return;
  }
  Nest n(s, all.layout, {}, {0});
  Expression& e = n.expression();
  const std::string condition = n.value(*where).text;
  const Expr word = n.add_loop("word", all.layout.values[0].extent / each, true);
  const Expr first = simplify(n.index(all) + word * each, s.c.facts);
  e.body(e.depth()).line(fmt::format("{} = {} ? {}({} + {}) : 0;", word_of(s, packs, first),
                                     condition, function, elements, s.c.text(first)));
  n.emit(out);
}

/// The elements in registers, as memory holds them: rounded together where a cast makes them.
void pack_elements(State& s, ValueId v, const Tile& all, const Packs& packs, Writer& out) {
  const ThreadValue& l = all.layout;
  const bool words = packs.per_word() > 1;
  const auto rounding = rounding_of(s, v, packs.stored, l);
  const Tile wide{rounding ? s.c.fresh("wide") : "", {f32, all.type.shape}, l};
  std::string narrow = packs.name;
  if (rounding) {
    s.declare_registers(wide, out);
  } else if (words) {
    narrow = s.c.fresh("narrow");
    out.line(fmt::format("{} {}[{}];", cpu::stored_type(s.c, packs.stored), narrow, l.registers()));
  }
  Nest n(s, l);
  Expression& e = n.expression();
  if (rounding) {
    write_register(n, n.value(rounding->x), wide);
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
  if (rounding) {
    join_words(s, packs, s.c.prelude.use(rounding->function, packs.stored, 1), wide.name, all,
               rounding->where, out);
  } else if (words) {
    join_words(s, packs, s.call("join"), narrow, all, std::nullopt, out);
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
