#include "tw/emit/cpu/transposed.h"

#include <algorithm>
#include <fmt/format.h>

#include "tw/emit/cpu/contract_tile.h"
#include "tw/emit/cpu/survey.h"

namespace tw::cpu {
namespace {

class TransposedNest {
 public:
  TransposedNest(Context& c, ValueId v, const Target& target)
      : c_(c), v_(v), target_(target), axes_(axes_of(c, c.program.type(v).shape, at_)) {}

  /// Finds the two axes and the lanes.
  bool fits() {
    const DType t = c_.program.type(v_).dtype;
    if (axes_.size() < 2 || t == b1 || target_.place) return false;
    if (target_.view && c_.streams(target_.view->param)) return false;
    const Survey s = survey(
        c_, axes_, [&](Expression& e) { write_element(e, e.value(v_, at_), target_, at_, ""); });
    int64_t widest = 1;
    for (const auto& [size, loops] : s.sizes) widest = std::max(widest, size);
    lanes_ = static_cast<int>(c_.machine.vector_bytes / widest);
    const auto whole = [&](const Axis& a) { return a.extent % lanes_ == 0; };
    for (size_t from = 0; from < axes_.size(); ++from)
      for (size_t to = 0; to < axes_.size(); ++to)
        if (lanes_ >= 4 && from != to && whole(axes_[from]) && whole(axes_[to]) &&
            runs_along(s, from, to)) {
          order(from, to);
          return true;
        }
    return false;
  }

  ConditionalNest emit() {
    ConditionalNest nest;
    // At least two values: a counter known to be 0 would vanish from the addresses.
    for (const Axis* a : {&to(), &from()})
      c_.facts[a->counter] = {{0, std::max<int64_t>(a->extent - lanes_, 1)}, 1};
    Expression read = make(from_loop());
    read.set_limited((1u << axes_.size()) - 1);
    read.assume(Assume::inside);
    const DType type = register_type(c_.program.type(v_).dtype);
    use_transpose(c_.prelude, type, lanes_);
    const std::string lines = c_.fresh("lines");
    std::string values;
    Reg one;
    for (int l = 0; l < lanes_; ++l) {
      one = read.widen(read.value(v_, shifted(to(), l)));
      values += (l ? ", " : "") + one.text;
    }
    Writer& body = read.body(read.depth());
    body.line(fmt::format("{} {}[] = {{{}}};", c_.prelude.type(type, lanes_), lines, values));
    body.line(fmt::format("tw_transpose({});", lines));
    Expression write = make(to_loop());
    for (int l = 0; l < lanes_; ++l) {
      Reg r{fmt::format("{}[{}]", lines, l), one.dtype, lanes_, 3u << to_loop(), 0};
      write_element(write, r, target_, shifted(from(), l), "");
    }
    nest.condition = condition(read);
    loops(read, write, nest.text);
    return nest;
  }

 private:
  int to_loop() const { return static_cast<int>(axes_.size()) - 2; }
  int from_loop() const { return static_cast<int>(axes_.size()) - 1; }
  const Axis& to() const { return axes_[static_cast<size_t>(to_loop())]; }
  const Axis& from() const { return axes_[static_cast<size_t>(from_loop())]; }

  /// Loads stand still or run along `from`, one at least does; the target, surveyed last, runs
  /// along `to`.
  bool runs_along(const Survey& s, size_t from, size_t to) {
    bool any = false;
    for (size_t k = 0; k + 1 < s.accesses.size(); ++k) {
      const Move m = movement(c_, s.accesses[k], axes_, from);
      if (m != Move::still && m != Move::unit) return false;
      const bool turned = m == Move::unit && movement(c_, s.accesses[k], axes_, to) != Move::still;
      any = any || turned;
    }
    return any && movement(c_, s.accesses.back(), axes_, to) == Move::unit;
  }

  /// `to` second to last, `from` last.
  void order(size_t from, size_t to) {
    const Axis a = axes_[from], b = axes_[to];
    std::erase_if(axes_, [&](const Axis& x) {
      return x.tile_axis == a.tile_axis || x.tile_axis == b.tile_axis;
    });
    axes_.push_back(b);
    axes_.push_back(a);
  }

  Expression make(int lane_loop) {
    Expression e(c_);
    for (const Axis& a : axes_) e.add_loop(a.counter);
    e.set_lanes(lane_loop, lanes_);
    return e;
  }

  Coords shifted(const Axis& axis, int by) const {
    Coords at = at_;
    Expr& x = at[static_cast<size_t>(axis.tile_axis)];
    x = x + by;
    return at;
  }

  void loops(Expression& read, Expression& write, Writer& out) {
    for (Expression* e : {&read, &write}) out.append(e->body(0));
    for (size_t k = 0; k < axes_.size(); ++k) {
      const bool block = static_cast<int>(k) >= to_loop();
      out.open(fmt::format("for (i64 {0} = 0; {0} < {1}; {0} += {2}) {{",
                           c_.symbol_text(axes_[k].counter), axes_[k].extent, block ? lanes_ : 1));
      for (Expression* e : {&read, &write}) out.append(e->body(static_cast<int>(k) + 1));
    }
    for (size_t k = 0; k < axes_.size(); ++k) out.close();
  }

  /// What the loads took for granted, and that the target holds the whole tile.
  std::string condition(const Expression& read) {
    std::vector<std::string> all = read.guards();
    // The last of the lines reaches furthest: most of the others' limits follow.
    for (size_t k = read.limits().size(); k-- > 0;) {
      const Limit& l = read.limits()[k];
      const Axis& a = axes_[static_cast<size_t>(l.loop)];
      const int64_t needs = l.loop == to_loop() ? a.extent - lanes_ + 1 : a.extent;
      add_unless_proved(needs, l.hi, all);
      add_unless_proved(l.lo, 0, all);
    }
    if (target_.view) add_bounds(all);
    std::string text;
    for (size_t k = 0; k < all.size(); ++k) {
      if (std::find(all.begin(), all.begin() + k, all[k]) == all.begin() + k)
        text += (text.empty() ? "" : " && ") + all[k];
    }
    return text;
  }

  void add_unless_proved(const Expr& least, const Expr& most, std::vector<std::string>& all) {
    const Expr room = simplify(most - least, c_.facts);
    if (prove_le(0, room, c_.facts)) return;
    for (const Expr& known : rooms_) {
      if (prove_le(known, room, c_.facts)) return;  // it follows
    }
    rooms_.push_back(room);
    all.push_back(fmt::format("{} >= 0", c_.text(room)));
  }

  void add_bounds(std::vector<std::string>& all) {
    const View& view = *target_.view;
    for (size_t axis = 0, k = 0; axis < view.origin.size(); ++axis) {
      int64_t extent = 1;
      if (k < view.axes.size() && view.axes[k] == static_cast<int>(axis))
        extent = c_.program.type(v_).shape[k++];
      const Expr& dim = c_.program.params[view.param].dims[axis];
      add_unless_proved(0, view.origin[axis], all);
      add_unless_proved(view.origin[axis] + extent, dim, all);
    }
  }

  Context& c_;
  ValueId v_;
  const Target& target_;
  Coords at_;
  std::vector<Axis> axes_;
  std::vector<Expr> rooms_;  ///< known not to be negative
  int lanes_ = 1;
};

}  // namespace

std::optional<ConditionalNest> transposed_nest(Context& c, ValueId v, const Target& target) {
  const std::map<std::string, int> names = c.names;
  TransposedNest nest(c, v, target);
  if (nest.fits()) return nest.emit();
  c.names = names;
  return std::nullopt;
}

}  // namespace tw::cpu
