#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "tw/emit/cpu/nest.h"
#include "tw/emit/cpu/places.h"
#include "tw/emit/cpu/survey.h"
#include "tw/emit/cpu/transposed.h"
#include "tw/ir/infer.h"

namespace tw::cpu {
namespace {

/// A nest that writes every element of a value once.
class ElementNest {
 public:
  ElementNest(Context& c, ValueId v, const Target& target)
      : c_(c), v_(v), target_(target), axes_(axes_of(c, shape(), at_)) {}

  void emit(Writer& out) {
    const LaneChoice lanes = lane_choice();
    if (lanes.axis >= 0) {
      std::rotate(axes_.begin() + lanes.axis, axes_.begin() + lanes.axis + 1, axes_.end());
    }
    clip();
    if (!outside_.empty()) out.open(fmt::format("if ({}) {{", outside_));
    Expression e(c_);
    for (const Axis& a : axes_) e.add_loop(a.counter);
    const int last = static_cast<int>(axes_.size()) - 1;
    if (lanes.axis >= 0) {
      e.set_lanes(last, lanes.lanes);
      emit_lanes(e, last, out);
    } else {
      evaluate(e, "");
      open_loops(e, axes_, ranges_, last + 1, out);
      for (int k = 0; k <= last; ++k) out.close();
    }
    if (!outside_.empty()) out.close();
  }

 private:
  Extents shape() const {
    return target_.place ? place_extents(c_.program, *target_.place) : c_.program.type(v_).shape;
  }

  /// Of several elements at one place the last counts, so those places are walked in order; and
  /// what they were before is taken one by one.
  LaneChoice lane_choice() {
    if (target_.place && target_.storage) return {};
    const LaneChoice lanes = choose_lanes(c_, axes_, [&](Expression& e) { evaluate(e, ""); });
    const bool in_order = lanes.axis == static_cast<int>(axes_.size()) - 1;
    return target_.place && !in_order ? LaneChoice{} : lanes;
  }

  void evaluate(Expression& e, const std::string& active) {
    const Reg r = e.value(v_, at_);
    if (target_.place) return write_place(e, r, *target_.place, target_.storage, at_, active);
    Target target = target_;
    target.streams = streams_;
    write_element(e, r, target, at_, active);
  }

  /// Loops run over the part of the tile that lies inside the view.
  void clip() {
    for (const Axis& a : axes_) ranges_.push_back({"0", std::to_string(a.extent), true});
    if (!target_.view) return;
    const View& view = *target_.view;
    Coords coords(view.origin.begin(), view.origin.end());
    for (size_t k = 0; k < view.axes.size(); ++k) {
      coords[view.axes[k]] = simplify(coords[view.axes[k]] + at_[k], c_.facts);
    }
    for (const Bound& b : open_bounds(c_, view.param, coords)) {
      int loop = -1;
      for (size_t k = 0; k < axes_.size(); ++k) {
        if (mentions(b.at, axes_[k].counter)) loop = static_cast<int>(k);
      }
      if (loop < 0) {
        if (b.low) add_condition(fmt::format("{} >= 0", c_.text(b.at)));
        if (b.high) add_condition(fmt::format("{} < {}", c_.text(b.at), c_.text(b.dim)));
        continue;
      }
      const Symbol s = axes_[loop].counter;
      const Expr rest = simplify(b.at - Expr::symbol(s), c_.facts);
      ranges_[loop].whole = false;
      if (b.low) ranges_[loop].lo = c_.text(simplify(max(Expr(0) - rest, Expr(0)), c_.facts));
      if (b.high) {
        ranges_[loop].hi = c_.text(simplify(min(b.dim - rest, axes_[loop].extent), c_.facts));
      }
      clips_.push_back(
          {loop, b.low ? simplify(0 - rest, c_.facts) : Expr(0), simplify(b.dim - rest, c_.facts)});
    }
  }

  void add_condition(const std::string& text) {
    outside_ += (outside_.empty() ? "" : " && ") + text;
  }

  void emit_lanes(Expression& e, int last, Writer& out) {
    const std::string j = c_.symbol_text(axes_[last].counter);
    const Range& r = ranges_[last];
    const int lanes = e.lanes();
    streams_ = target_.view && c_.streams(target_.view->param);
    e.set_limited(1u << last);
    e.assume(Assume::inside);
    evaluate(e, "");
    if (c_.specialisation.streaming && prefetches()) prefetch_next(e);
    if (is_shared()) prefetch_shared(e);
    const std::vector<Writer> fast = e.take_from(last + 1);
    const std::string full = whole_part(e, last);
    const bool exact = full == r.hi && r.whole && axes_[last].extent % lanes == 0 && !streams_;
    std::vector<Writer> edge;
    if (!exact) {
      e.assume(Assume::nothing);
      e.set_active("count");
      const bool streams = std::exchange(streams_, false);
      evaluate(e, "count");
      streams_ = streams;
      edge = e.take_from(last + 1);
    }
    const std::string first = streams_ ? first_whole_line(e, last) : "";
    const bool whole = target_.view || target_.place;
    const std::optional<Expr> limit = whole ? std::nullopt : one_limit(e, last);
    open_loops(e, axes_, ranges_, last, out);
    if (exact) {
      out.open(fmt::format("for (i64 {0} = 0; {0} < {1}; {0} += {2}) {{", j, r.hi, lanes));
      out.append(fast[0]);
      out.close();
    } else {
      emit_ragged(j, lanes, r, full, first, fast[0], edge[0], out);
      if (limit) emit_beyond(*limit, last, lanes, out);
      out.line(fmt::format("for (; {0} < {0}_end; {0} += {1}) {2}({0}, {0}_end - {0});", j, lanes,
                           part_));
    }
    for (int k = 0; k < last; ++k) out.close();
  }

  /// Whole vectors as far as `full`, parts of vectors before the first whole line and to the end.
  void emit_ragged(const std::string& j, int lanes, const Range& r, const std::string& full,
                   const std::string& first, const Writer& fast, const Writer& edge, Writer& out) {
    part_ = c_.fresh("part");
    out.open(fmt::format("auto {} = [&](i64 {}, i64 count) __attribute__((always_inline)) {{",
                         part_, j));
    out.append(edge);
    out.close("};");
    out.line(fmt::format("i64 {} = {};", j, r.lo));
    out.line(fmt::format("const i64 {}_end = {};", j, r.hi));
    std::string limit = j + "_end";
    if (full != r.hi) {
      limit = j + "_full";
      out.line(fmt::format("const i64 {} = {};", limit, full));
    }
    if (!first.empty()) {
      out.line(fmt::format("const i64 {0}_first = min({0} + ({1}), {0}_end);", j, first));
      out.line(fmt::format("for (; {0} < {0}_first; {0} += {1}) {2}({0}, {0}_first - {0});", j,
                           lanes, part_));
      out.line(fmt::format("{0} = min({0}, {0}_first);", j));
    }
    out.open(fmt::format("for (; {0} + {1} <= {2}; {0} += {1}) {{", j, lanes, limit));
    out.append(fast);
    out.close();
  }

  /// Where the loads along a loop end inside the tile, when all do at one place.
  std::optional<Expr> one_limit(const Expression& e, int loop) const {
    std::optional<Expr> one;
    for (const Limit& l : e.limits()) {
      if (l.loop != loop || prove_le(axes_[loop].extent, l.hi, c_.facts)) continue;
      if (one && *one != l.hi) return std::nullopt;
      one = l.hi;
    }
    return one;
  }

  /// Past the limit every load is its pad: when all elements there are equal, one is computed.
  void emit_beyond(const Expr& limit, int last, int lanes, Writer& out) {
    Expression e(c_);
    for (const Axis& a : axes_) e.add_loop(a.counter);
    e.set_lanes(last, lanes);
    e.set_limited(1u << last);
    e.assume(Assume::outside, {last, 0, limit});
    const Reg one = e.value(v_, at_);
    if (one.loops >> last & 1) return;
    const std::string j = c_.symbol_text(axes_[last].counter);
    out.line(fmt::format("const i64 {0}_in = min(max({1}, 0), {0}_end);", j, c_.text(limit)));
    out.line(
        fmt::format("for (; {0} < {0}_in; {0} += {1}) {2}({0}, {0}_end - {0});", j, lanes, part_));
    out.open(fmt::format("if ({0} < {0}_end) {{", j));
    for (int depth = 0; depth <= last; ++depth) out.append(e.body(depth));
    e.take_from(0);
    write_element(e, e.widen(one), target_, at_, "");
    out.open(fmt::format("for (; {0} + {1} <= {0}_end; {0} += {1}) {{", j, lanes));
    for (const Writer& text : e.take_from(0)) out.append(text);
    out.close();
    out.close();
  }

  /// How many elements stand before the first whole line of memory of the target.
  std::string first_whole_line(Expression& e, int last) {
    Coords coords(target_.view->origin.begin(), target_.view->origin.end());
    for (size_t k = 0; k < target_.view->axes.size(); ++k) {
      Expr& axis = coords[target_.view->axes[k]];
      axis = simplify(axis + at_[k], c_.facts);
    }
    const std::string pointer = e.address(target_.view->param, coords).pointer;
    const int64_t size = bytes(c_.program.params[target_.view->param].dtype);
    // The pointer's text holds the counter; the lambda below is where it starts.
    (void)last;
    return fmt::format("-(i64)({}) / {} & {}", pointer, size, c_.machine.vector_bytes / size - 1);
  }

  bool prefetches() const {
    const Context::Prefetch& p = c_.prefetch;
    return p.view != nullptr && p.value == v_ && !target_.place &&
           (p.kept ? !target_.view : target_.view == p.view);
  }

  /// The same coordinates in the next instance, when they are others.
  std::optional<Coords> in_next_instance(Coords coords) const {
    if (c_.program.grid.empty()) return std::nullopt;
    const Symbol pid{SymbolKind::pid, static_cast<int>(c_.program.grid.size()) - 1};
    bool moves = false;
    for (Expr& x : coords) {
      moves = moves || mentions(x, pid);
      x = simplify(substitute(x,
                              [&](Symbol s) -> std::optional<Expr> {
                                if (s == pid) return Expr::symbol(s) + 1;
                                return std::nullopt;
                              }),
                   c_.facts);
    }
    return moves ? std::optional(std::move(coords)) : std::nullopt;
  }

  /// Whether the nest fills a tile that is stretched along its last axes: little memory, read
  /// before the much that it is combined with.
  bool is_shared() const {
    const Storage* s = target_.storage;
    return s && !target_.place && s->type.shape.size() > 1 && s->type.shape.back() == 1;
  }

  void prefetch_shared(Expression& e) {
    const Survey s = survey(c_, axes_, [&](Expression& all) { all.value(v_, at_); });
    for (const Expression::Access& a : s.accesses) {
      if (a.param < 0 || a.loaded) continue;
      if (is_packed(c_.program.params[a.param].dtype)) continue;
      const std::optional<Coords> there = in_next_instance(a.at);
      if (!there) continue;
      const Expression::Address next = e.address(a.param, *there);
      if (next.step == 1)
        e.body(e.depth()).line(fmt::format("__builtin_prefetch({}, 0, 3);", next.pointer));
    }
  }

  /// What the next instance reads first, at the place that this one writes: inputs of the same
  /// extents as the output.
  void prefetch_next(Expression& e) {
    const View& view = *c_.prefetch.view;
    Coords here(view.origin.begin(), view.origin.end());
    for (size_t k = 0; k < view.axes.size(); ++k) here[view.axes[k]] = here[view.axes[k]] + at_[k];
    const std::optional<Coords> coords = in_next_instance(std::move(here));
    if (!coords) return;
    const Param& written = c_.program.params[view.param];
    for (size_t k = 0; k < c_.program.params.size(); ++k) {
      const Param& a = c_.program.params[k];
      if (a.kind != ParamKind::in || a.dims != written.dims || is_packed(a.dtype)) continue;
      const Expression::Address next = e.address(static_cast<int>(k), *coords);
      if (next.step != 1) continue;
      e.body(e.depth()).line(fmt::format("__builtin_prefetch({}, 0, 3);", next.pointer));
    }
  }

  /// C++ text of the end of the range in which `inside` holds.
  std::string whole_part(const Expression& e, int loop) const {
    std::string full = ranges_[loop].hi, conditions;
    for (const Limit& l : e.limits()) {
      if (std::find(clips_.begin(), clips_.end(), l) != clips_.end()) continue;
      if (!prove_le(axes_[loop].extent, l.hi, c_.facts)) {
        full = fmt::format("min({}, {})", full, c_.text(l.hi));
      }
      if (!prove_le(l.lo, 0, c_.facts)) {
        conditions += fmt::format("{}{} <= {}", conditions.empty() ? "" : " && ", c_.text(l.lo),
                                  ranges_[loop].lo);
      }
    }
    for (const std::string& g : e.guards()) conditions += (conditions.empty() ? "" : " && ") + g;
    return conditions.empty() ? full
                              : fmt::format("{} ? {} : {}", conditions, full, ranges_[loop].lo);
  }

  Context& c_;
  ValueId v_;
  Target target_;
  Coords at_;
  std::vector<Axis> axes_;
  std::vector<Range> ranges_;
  std::vector<Limit> clips_;
  std::string outside_;
  std::string part_;  ///< the function of emitted text that does a part of a vector
  bool streams_ = false;
};

}  // namespace

void emit_elements(Context& c, ValueId v, const Target& target, Writer& out) {
  const std::optional<ConditionalNest> turned = transposed_nest(c, v, target);
  if (turned && turned->condition.empty()) return out.append(turned->text);
  if (turned) {
    out.open(fmt::format("if ({}) {{", turned->condition));
    out.append(turned->text);
    out.close("} else {");
    out.deeper();
  }
  ElementNest(c, v, target).emit(out);
  if (turned) out.close();
}

}  // namespace tw::cpu
