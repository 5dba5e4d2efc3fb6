#include "tw/emit/cuda/run_nest.h"

#include <algorithm>
#include <fmt/format.h>

#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cpu/places.h"

namespace tw::cuda {

using layout::ThreadValue;

std::optional<size_t> unit_tile_axis(const State& s, const View& view) {
  const int unit = s.c.specialisation.params[view.param].unit_axis;
  const auto it = std::ranges::find(view.axes, unit);
  if (unit < 0 || it == view.axes.end()) return std::nullopt;
  return static_cast<size_t>(it - view.axes.begin());
}

std::string conjunction(const std::string& a, const std::string& b) {
  return a.empty() ? b : b.empty() ? a : a + " && " + b;
}

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
    if (first.low) text = conjunction(text, cpu::condition(s.c, first));
    if (end.high) text = conjunction(text, cpu::condition(s.c, end));
  }
  return text;
}

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

std::string pack_type(State& s, const Packs& p) {
  s.c.prelude.outside("Pack");
  return fmt::format("Pack<{}, {}>", p.per_word() > 1 ? "u32" : cpu::stored_type(s.c, p.stored),
                     p.count / p.per_word());
}

Packs declare_packs(State& s, DType stored, int64_t count, const ThreadValue& l, Writer& out,
                    int64_t stages) {
  Packs p{s.c.fresh("raw"), stored, count};
  out.line(fmt::format("{} {}{}[{}]{};", pack_type(s, p), p.name,
                       stages > 1 ? fmt::format("[{}]", stages) : "", l.registers() / count,
                       stages > 0 ? " = {}" : ""));
  return p;
}

std::string word_of(State& s, const Packs& p, const Expr& index) {
  const Expr in_pack = simplify(mod(index, p.count), s.c.facts);
  return fmt::format("{}[{}].v[{}]", p.name, quotient(s, index, p.count),
                     quotient(s, in_pack, p.per_word()));
}

std::string element_of(State& s, const Packs& p, const Expr& index) {
  if (p.per_word() == 1) return in_packs(s, p.name, index, p.count);
  return fmt::format("{}<{}>({}, {})", s.call("part"), cpu::stored_type(s.c, p.stored),
                     word_of(s, p, index), remainder(s, index, p.per_word()));
}

std::string shifted(State& s, const Packs& p, const Expr& index, const std::string& x) {
  return fmt::format("(u32)({}){} << {} * ({})",
                     s.c.prelude.type(cpu::unsigned_of_bytes(bytes(p.stored))), x,
                     8 * bytes(p.stored), remainder(s, index, p.per_word()));
}

std::string inside_tensor(State& s, const View& view, const Coords& coords) {
  std::string text;
  for (const cpu::Bound& b : cpu::open_bounds(s.c, view.param, coords)) {
    text = conjunction(text, cpu::condition(s.c, b));
  }
  return text;
}

RunNest::RunNest(State& s, const ThreadValue& l, const View& view, const Run& run, const Op* gather)
    : s_(s), l_(l), view_(view), run_(run), nest(s, l, {}, {0}) {
  unit_ = static_cast<size_t>(l.values[0].axis);
  at_ = nest.at();
  if (run.pieces > 1) {
    piece_ = nest.add_loop("piece", run.pieces, true);
    at_[unit_] = simplify(at_[unit_] + piece_ * run.count, s.c.facts);
  }
  coords = gather == nullptr ? tensor_place(s, view, at_) : place(*gather);
}

std::string RunNest::condition() {
  const std::string inside = conjunction(guard_, inside_run(s_, view_, coords, run_));
  return conjunction(inside_tile(s_, l_, at_, run_.count, unit_), inside);
}

Coords RunNest::place(const Op& gather) {
  Expression& e = nest.expression();
  cpu::Places p = cpu::places_of(e, gather, at_);
  if (p.inside) guard_ = p.inside->text;
  if (const auto mask = place_operands(gather).mask)
    guard_ = conjunction(guard_, e.value(*mask, at_).text);
  return p.at;
}

}  // namespace tw::cuda
