#include "tw/emit/cpu/nest.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/emit/cpu/survey.h"

namespace tw::cpu {

Move movement(Context& c, const Expression::Access& a, const std::vector<Axis>& axes, size_t axis) {
  if (a.irregular >> axis & 1) return Move::irregular;
  const Symbol counter = axes[axis].counter;
  Move result = Move::still;
  int64_t below = 1;
  for (size_t k = a.at.size(); k-- > 0;) {
    const std::optional<int64_t> s = slope(a.at[k], counter, c.facts);
    const int64_t stride = below;
    if (a.stored) below *= a.stored->type.shape[k];
    if (!s) return Move::irregular;
    if (*s == 0) continue;
    bool unit = *s == 1 && result == Move::still;
    if (a.stored) {
      unit = unit && stride == 1;
    } else {
      const ParamFacts& facts = c.specialisation.params[a.param];
      if (facts.zero_stride >> k & 1) continue;
      unit = unit && facts.unit_axis == static_cast<int>(k);
    }
    result = unit ? Move::unit : Move::strided;
  }
  return result;
}

namespace {

int score(Move m) {
  switch (m) {
    case Move::still:
      return 1;
    case Move::unit:
      return 3;
    case Move::strided:
      return -4;
    case Move::irregular:
      return -9;
  }
  return 0;
}

/// Not l, which counts the lanes of a vector.
const char* const kCounters[] = {"i", "j", "k", "m", "n", "o"};

}  // namespace

std::vector<Axis> axes_of(Context& c, const Extents& shape, Coords& at) {
  std::vector<Axis> axes;
  at.assign(shape.size(), Expr(0));
  for (size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] == 1) continue;
    const Symbol s = c.new_loop(kCounters[std::min<size_t>(k, 5)], shape[k]);
    axes.push_back({s, shape[k], static_cast<int>(k)});
    at[k] = Expr::symbol(s);
  }
  return axes;
}

Survey survey(Context& c, const std::vector<Axis>& axes,
              const std::function<void(Expression&)>& evaluate) {
  const Draft draft(c);
  Expression e(c);
  for (const Axis& a : axes) e.add_loop(a.counter);
  Survey s;
  e.survey = &s.accesses;
  evaluate(e);
  s.sizes = e.sizes;
  return s;
}

LaneChoice choose_lanes(Context& c, const std::vector<Axis>& axes,
                        const std::function<void(Expression&)>& evaluate) {
  const Survey s = survey(c, axes, evaluate);
  LaneChoice best;
  int most = INT32_MIN;
  for (size_t k = 0; k < axes.size(); ++k) {
    int64_t widest = 1;
    for (const auto& [size, loops] : s.sizes) {
      if (loops >> k & 1) widest = std::max(widest, size);
    }
    const int64_t fit = std::min<int64_t>(c.machine.vector_bytes / widest,
                                          std::bit_floor(static_cast<uint64_t>(axes[k].extent)));
    int points = fit < 4 ? -6 : 0;
    for (const Expression::Access& a : s.accesses) points += score(movement(c, a, axes, k));
    if (fit < 2 || points < most) continue;
    most = points;
    best = {static_cast<int>(k), static_cast<int>(fit)};
  }
  return best;
}

void open_loops(Expression& e, const std::vector<Axis>& axes, const std::vector<Range>& ranges,
                int to, Writer& out) {
  out.append(e.body(0));
  for (int k = 0; k < to; ++k) {
    const std::string i = e.context().symbol_text(axes[k].counter);
    out.open(
        fmt::format("for (i64 {0} = {1}; {0} < {2}; ++{0}) {{", i, ranges[k].lo, ranges[k].hi));
    out.append(e.body(k + 1));
  }
}

void write_element(Expression& e, const Reg& r, const Target& target, const Coords& at,
                   const std::string& active) {
  Context& c = e.context();
  Coords coords = at;
  DType t = r.dtype;
  if (e.survey) e.sizes.emplace_back(t == b1 ? 1 : bytes(register_type(t)), UINT32_MAX);
  Expression::Address a;
  if (target.view) {
    t = c.program.params[target.view->param].dtype;
    coords.assign(target.view->origin.begin(), target.view->origin.end());
    for (size_t k = 0; k < target.view->axes.size(); ++k) {
      Expr& axis = coords[target.view->axes[k]];
      axis = simplify(axis + at[k], c.facts);
    }
    if (e.survey) e.survey->push_back({target.view->param, coords, nullptr});
    a = e.address(target.view->param, coords);
  } else {
    if (t != b1) t = register_type(t);
    if (e.survey) e.survey->push_back({-1, coords, target.storage});
    if (target.storage->variable()) {
      e.body(e.depth()).line(fmt::format("{} = {};", target.storage->name, r.text));
      return;
    }
    a = e.address(*target.storage, coords);
  }
  Writer& out = e.body(e.depth());
  if (e.lane_loop() < 0) {
    const std::string f = c.prelude.use("store", t, 1);
    out.line(fmt::format("{}({}, {});", f, a.pointer, r.text));
    return;
  }
  const Reg w = r.dtype == b1 ? e.mask_of(r, 4) : e.widen(r);
  const std::string lanes = active.empty() ? std::to_string(e.lanes()) : active;
  if (a.step != 1) {
    const std::string f = c.prelude.use("scatter", t, e.lanes());
    out.line(fmt::format("{}({}, {}, {}, {});", f, a.pointer, a.step_text, w.text, lanes));
  } else if (active.empty()) {
    const char* store = target.streams ? "stream" : "store";
    out.line(fmt::format("{}({}, {});", c.prelude.use(store, t, e.lanes()), a.pointer, w.text));
  } else {
    const std::string f = c.prelude.use("store_part", t, e.lanes());
    out.line(fmt::format("{}({}, {}, {});", f, a.pointer, w.text, active));
  }
}

}  // namespace tw::cpu
