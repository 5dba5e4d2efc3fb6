#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/emit/cpu/expression.h"

namespace tw::cpu {
namespace {

/// A coordinate as the sum of a small number, all that threads of a block differ in, and the rest.
struct Parts {
  Expr near, far;
};

Parts parts_of(const Context& c, const Expr& e) {
  constexpr int64_t kNear = 1 << 20;
  const bool sub = e.kind() == Expr::Kind::sub;
  if (sub || e.kind() == Expr::Kind::add) {
    const Parts l = parts_of(c, e.lhs()), r = parts_of(c, e.rhs());
    return sub ? Parts{l.near - r.near, l.far - r.far} : Parts{l.near + r.near, l.far + r.far};
  }
  const Interval range = bounds(e, c.facts);
  return -kNear <= range.lo && range.hi <= kNear ? Parts{e, 0} : Parts{0, e};
}

/// What tw_clamp makes of smaller numbers.
constexpr int64_t kLeastFar = 0x40000000;

/// What is near is compared in 32 bits; the other side is one number for all threads.
std::string near_condition(Context& c, const Bound& b, const Parts& at) {
  const std::string near = c.text(simplify(at.near, c.facts));
  const auto far = [&](const Expr& e) {
    const Expr n = simplify(e, c.facts);
    const bool high = prove_le(-kLeastFar, n, c.facts);
    return n.is_constant()
               ? c.text(n)
               : fmt::format("{}({})", c.prelude.use(high ? "clamp_high" : "clamp", i64, 1),
                             c.text(n));
  };
  std::string text;
  if (b.low) text = fmt::format("{} >= {}", near, far(0 - at.far));
  if (b.high) text += fmt::format("{}{} < {}", b.low ? " && " : "", near, far(b.dim - at.far));
  return text;
}

}  // namespace

std::string stored_type(Context& c, DType t) {
  if (t == b1) return c.prelude.type(u8);
  return c.prelude.type(register_type(t) == t ? t : unsigned_of_bytes(bytes(t)));
}

std::string stored_literal(Expression& e, DType t, const Number& n) {
  if (t == b1) return n.as_double() != 0 ? "(u8)1" : "(u8)0";
  if (register_type(t) != t) {
    const uint64_t code =
        is_float(t) ? encode(t, n.as_double()) : static_cast<uint64_t>(n.i) & ((1u << bits(t)) - 1);
    return fmt::format("({}){:#x}", stored_type(e.context(), t), code);
  }
  return e.literal(t, n).text;
}

std::string condition(Context& c, const Bound& b) {
  if (c.prelude.for_thread()) {
    const Parts at = parts_of(c, b.at);
    if (!at.near.is_constant()) return near_condition(c, b, at);
  }
  std::string text;
  if (b.low) text = fmt::format("{} >= 0", c.text(b.at));
  if (b.high) {
    text += fmt::format("{}{} < {}", b.low ? " && " : "", c.text(b.at), c.text(b.dim));
  }
  return text;
}

std::optional<Bound> open_bound(const Context& c, const Expr& at, const Expr& dim) {
  Bound b{at, dim};
  b.low = !prove_le(0, b.at, c.facts);
  b.high = !prove_le(b.at + 1, b.dim, c.facts);
  return b.low || b.high ? std::optional(b) : std::nullopt;
}

std::vector<Bound> open_bounds(const Context& c, int param, const Coords& at) {
  std::vector<Bound> open;
  const Param& p = c.program.params[param];
  for (size_t axis = 0; axis < at.size(); ++axis) {
    if (const auto b = open_bound(c, at[axis], p.dims[axis])) open.push_back(*b);
  }
  return open;
}

Expression::Address Expression::address_of(const std::string& base, const std::string& pointer_type,
                                           const std::vector<Term>& terms) {
  struct Part {
    uint32_t loops;
    std::string text;
    bool near = true;
  };
  std::vector<Part> parts;
  Address a;
  int64_t step = 0;
  bool numeric = true, regular = true;
  for (const Term& t : terms) {
    Expr rest = t.coordinate;
    const auto scaled = [&](const std::string& x) {
      return t.stride.empty() ? x : fmt::format("({}) * {}", x, t.stride);
    };
    for (size_t k = 0; k < loops_.size(); ++k) {
      const std::optional<int64_t> s = slope(rest, loops_[k], c_.facts);
      if (static_cast<int>(k) == lane_loop_) {
        regular = regular && s.has_value();
        if (s && *s != 0) {
          numeric = numeric && t.stride.empty();
          step += *s;
          if (!a.step_text.empty()) a.step_text += " + ";
          a.step_text +=
              t.stride.empty() ? std::to_string(*s) : fmt::format("{} * {}", *s, t.stride);
        }
      }
      if (!s || *s == 0) continue;
      const Expr part = simplify(Expr::symbol(loops_[k]) * *s, c_.facts);
      parts.push_back({1u << k, scaled(c_.text(part))});
      rest = simplify(without(rest, loops_[k]), c_.facts);
    }
    if (rest == Expr(0)) continue;
    const Parts both = c_.prelude.for_thread() ? parts_of(c_, rest) : Parts{0, rest};
    if (both.far != Expr(0))
      parts.push_back({loops_of(both.far), scaled(c_.text(both.far)), false});
    if (both.near != Expr(0)) parts.push_back({loops_of(both.near), scaled(c_.text(both.near))});
  }
  if (!regular) a.step_text.clear();
  if (regular && a.step_text.empty()) a.step_text = "0";
  if (regular && numeric) a.step = step;
  // What is one number for all threads stands first.
  std::stable_sort(parts.begin(), parts.end(), [](const Part& x, const Part& y) {
    return std::pair(std::bit_width(x.loops), x.near) < std::pair(std::bit_width(y.loops), y.near);
  });
  a.pointer = base;
  for (size_t i = 0; i < parts.size();) {
    std::string sum = a.pointer;
    const int depth = depth_of(parts[i].loops);
    for (; i < parts.size() && depth_of(parts[i].loops) == depth; ++i) {
      sum += " + " + parts[i].text;
      a.loops |= parts[i].loops;
    }
    a.pointer = i < parts.size() ? define_text(pointer_type, a.loops, sum, "p") : sum;
  }
  return a;
}

Expression::Address Expression::address(int param, const Coords& at) {
  const ParamFacts& facts = c_.specialisation.params[param];
  const Param& p = c_.program.params[param];
  std::vector<Term> terms;
  for (size_t axis = 0; axis < at.size(); ++axis) {
    if (facts.zero_stride >> axis & 1) continue;
    const bool unit = static_cast<int>(axis) == facts.unit_axis;
    terms.push_back({at[axis], unit ? "" : fmt::format("{}_s{}", p.name, axis)});
  }
  const std::string type = pointer_type(c_.prelude, p.dtype, p.kind != ParamKind::in);
  return address_of(p.name, is_packed(p.dtype) ? "const " + type : type + " const", terms);
}

Expression::Address Expression::address(const Storage& s, const Coords& at) {
  Expr flat = 0;
  for (size_t axis = 0; axis < at.size(); ++axis) flat = flat * s.type.shape[axis] + at[axis];
  flat = simplify(flat, c_.facts);
  const DType reg = s.type.dtype == b1 ? u8 : register_type(s.type.dtype);
  return address_of(s.name, c_.prelude.type(reg) + "* const", {{flat, ""}});
}

Reg Expression::load_stored(const Storage& s, const Coords& at) {
  if (s.variable()) return Reg{s.name, s.type.dtype, 1, 0, 0};
  if (survey) survey->push_back({-1, at, &s});
  const Address a = address(s, at);
  const DType t = s.type.dtype;
  const DType reg = t == b1 ? b1 : register_type(t);
  uint32_t loops = 0;
  for (const Expr& e : at) loops |= loops_of(e);
  const auto call = [&](const char* f, int lanes, const std::string& more) {
    return define(t, lanes, loops,
                  fmt::format("{}({}{})", c_.prelude.use(f, reg, lanes), a.pointer, more), 4);
  };
  if (!in_lanes(loops)) return call("load", 1, "");
  if (joined_ > 1) return join_loads(t, reg, at, [&] { return address(s, at); });
  if (a.step == 1) return call("load", lanes_, "");
  if (!a.regular()) return load_by_lane(-1, at, {}, &s, nullptr);
  return call("gather", lanes_, ", " + a.step_text);
}

Reg Expression::load(int param, const Coords& at, const Number& pad, const Reg* guard) {
  uint32_t loops = 0, irregular = 0;
  bool loaded = false;
  for (const Expr& e : at) {
    loops |= loops_of(e);
    for_each_symbol(e, [&](Symbol s) {
      const auto it = symbol_loops_.find(s);
      if (it == symbol_loops_.end()) return;
      irregular |= it->second;
      loaded = true;
    });
  }
  if (survey) survey->push_back({param, in_lanes_of_loop(at), nullptr, irregular, loaded});
  if (joined_ > 1 && in_lanes(loops)) {
    const DType t = c_.program.params[param].dtype;
    joinable_ =
        joinable_ && assume_ == Assume::inside && !guard && !is_packed(t) && grant(param, at);
    return join_loads(t, t, at, [&] { return address(param, at); });
  }
  const std::vector<Bound> open = open_bounds(c_, param, at);
  if (assume_ == Assume::outside) {
    for (const Bound& b : open) {
      if (is_outside(b)) return literal(c_.program.params[param].dtype, pad);
    }
  }
  if (!in_lanes(loops)) {
    const bool inside = assume_ == Assume::inside && guard == nullptr;
    return load_scalar(param, at, pad, inside ? left_open(open) : open, guard);
  }
  if (!address(param, at).regular()) return load_by_lane(param, at, pad, nullptr, guard);
  // Lanes past the tile may lie past the tensor's end, wherever the tile's elements lie.
  const bool all_there = active_.empty() || address(param, at).step == 0;
  if ((open.empty() && all_there) || assume_ == Assume::outside)
    return load_inside(param, at, pad, guard);
  if (assume_ == Assume::nothing) return load_part(param, at, pad, open, guard);
  return grant(param, at) ? load_inside(param, at, pad, guard)
                          : load_by_lane(param, at, pad, nullptr, guard);
}

bool Expression::grant(int param, const Coords& at) {
  const std::vector<Bound> open = open_bounds(c_, param, at);
  if (open.empty()) return true;
  if (assume_ != Assume::inside) return false;
  std::vector<std::string> guards;
  for (const Bound& b : open) {
    if (!take_for_granted(b, guards)) return false;
  }
  for (const std::string& g : guards) {
    if (std::find(guards_.begin(), guards_.end(), g) == guards_.end()) guards_.push_back(g);
  }
  guard_sets_.insert(guards);
  return true;
}

bool Expression::is_outside(const Bound& b) const {
  const std::optional<Limit> l = limit_of(b);
  if (!l || !b.high || l->loop != outside_.loop) return false;
  return l->end() == outside_.hi || prove_le(l->end(), outside_.hi, c_.facts);
}

std::optional<Limit> Expression::limit_of(const Bound& b) const {
  const uint32_t loops = loops_of(b.at) & limited_;
  if (loops == 0) return std::nullopt;
  bool loaded = false;
  for_each_symbol(b.at, [&](Symbol s) { loaded = loaded || symbol_loops_.contains(s); });
  if (loaded) return std::nullopt;
  const int loop = std::countr_zero(loops);
  const std::optional<int64_t> step = slope(b.at, loops_[loop], c_.facts);
  if (!step || *step < 1) return std::nullopt;
  Expr least = without(b.at, loops_[loop]), most = least;
  const bool bytes = byte_ && loop == lane_loop_;
  if (bytes) most = most + *step * (kBytes - 1);
  for (int k = loop + 1; k < loop_count(); ++k) {
    if (!(loops >> k & 1)) continue;
    const Symbol inner = loops_[k];
    const std::optional<int64_t> s = slope(least, inner, c_.facts);
    const int64_t last = c_.facts.at(inner).range.hi;
    if (!s) return std::nullopt;
    least = without(least, inner) + std::min<int64_t>(*s * last, 0);
    most = without(most, inner) + std::max<int64_t>(*s * last, 0);
  }
  least = simplify(least, c_.facts);
  most = simplify(most, c_.facts);
  const auto ended = [&](const Expr& e) { return simplify(e, c_.facts); };
  if (*step == 1 && least == most) {
    return Limit{loop, b.low ? ended(0 - least) : Expr(0), ended(b.dim - least), {}};
  }
  const int64_t stride = *step * (bytes ? kBytes : 1);
  return Limit{loop, b.low ? ended(cdiv(0 - least, stride)) : Expr(0),
               ended(floordiv(b.dim - 1 - most, stride) + 1), ended(cdiv(b.dim - least, stride))};
}

std::vector<Bound> Expression::left_open(const std::vector<Bound>& open) {
  std::vector<Limit> limits;
  for (const Bound& b : open) {
    const std::optional<Limit> l = limit_of(b);
    if (!l) return open;
    limits.push_back(*l);
  }
  if (!open.empty()) guard_sets_.insert(std::vector<std::string>());
  for (const Limit& l : limits) add_limit(l);
  return {};
}

bool Expression::take_for_granted(const Bound& b, std::vector<std::string>& guards) {
  if ((loops_of(b.at) & limited_) == 0) {
    guards.push_back(condition(c_, b));
    return true;
  }
  const std::optional<Limit> l = limit_of(b);
  if (l) add_limit(*l);
  return l.has_value();
}

Coords Expression::in_lanes_of_loop(Coords at) const {
  if (!byte_) return at;
  for (Expr& e : at) {
    e = substitute(e, [&](Symbol s) -> std::optional<Expr> {
      return s == *byte_ ? std::optional(Expr::symbol(lane_counter_) * kBytes) : std::nullopt;
    });
  }
  return at;
}

Reg Expression::bytes_in_lanes(ValueId v, Coords at, int axis) {
  lane_counter_ = loops_[lane_loop_];
  if (!byte_counter_) {
    const int64_t last = c_.facts.at(lane_counter_).range.hi;
    byte_counter_ = c_.new_loop("byte", (last + 1) * kBytes);
    c_.loop_names[byte_counter_->id] =
        fmt::format("({} * {})", c_.symbol_text(lane_counter_), kBytes);
  }
  byte_ = byte_counter_;
  at[axis] = simplify(without(at[axis], lane_counter_) + Expr::symbol(*byte_), c_.facts);
  loops_[lane_loop_] = *byte_;
  lanes_ *= kBytes;
  const std::string active = active_;
  if (!active.empty()) active_ = fmt::format("({}) * {}", active, kBytes);
  const Reg r = value(v, at);
  active_ = active;
  lanes_ /= kBytes;
  loops_[lane_loop_] = lane_counter_;
  byte_.reset();
  return r;
}

void Expression::add_limit(const Limit& l) {
  if (std::find(limits_.begin(), limits_.end(), l) == limits_.end()) limits_.push_back(l);
}

Reg Expression::load_scalar(int param, const Coords& at, const Number& pad,
                            const std::vector<Bound>& open, const Reg* guard) {
  const DType t = c_.program.params[param].dtype;
  const Address a = address(param, at);
  uint32_t loops = a.loops | (guard ? guard->loops : 0);
  for (const Expr& e : at) loops |= loops_of(e);
  const std::string read = fmt::format("{}({})", c_.prelude.use("load", t, 1), a.pointer);
  std::string text = guard ? guard->text : "";
  for (const Bound& b : open) text += (text.empty() ? "" : " && ") + condition(c_, b);
  if (text.empty()) return define(t, 1, loops, read);
  return define(t, 1, loops, fmt::format("{} ? {} : {}", text, read, literal(t, pad).text));
}

Reg Expression::load_inside(int param, const Coords& at, const Number& pad, const Reg* guard) {
  const DType t = c_.program.params[param].dtype;
  const Address a = address(param, at);
  uint32_t loops = guard ? guard->loops : 0;
  for (const Expr& e : at) loops |= loops_of(e);
  const auto guarded = [&](const std::string& read, bool lanes) {
    if (!guard) return read;
    const Reg outside = literal(t, pad);
    return fmt::format("{} ? {} : {}", guard->text, read,
                       lanes ? widen(outside).text : outside.text);
  };
  if (a.step == 0) {
    const std::string read = fmt::format("{}({})", c_.prelude.use("load", t, 1), a.pointer);
    // Before the loop only where the element is there however often the loop runs.
    const uint32_t lanes = 1u << lane_loop_;
    const bool free = !guard || !(guard->loops & lanes);
    if (free && open_bounds(c_, param, at).empty()) loops &= ~lanes;
    return define(t, 1, loops, guarded(read, false));
  }
  const bool unit = a.step == 1;
  const std::string f = c_.prelude.use(unit ? "load" : "gather", t, lanes_);
  const std::string read = unit ? fmt::format("{}({})", f, a.pointer)
                                : fmt::format("{}({}, {})", f, a.pointer, a.step_text);
  return define(t, lanes_, loops, guarded(read, true), 4);
}

Reg Expression::load_part(int param, const Coords& at, const Number& pad,
                          const std::vector<Bound>& open, const Reg* given) {
  const DType t = c_.program.params[param].dtype;
  const Address a = address(param, at);
  std::string first = "0", last = active_.empty() ? std::to_string(lanes_) : active_;
  std::string guard = given ? given->text : "";
  uint32_t loops = 1u << lane_loop_ | (given ? given->loops : 0);
  for (const Expr& e : at) loops |= loops_of(e);
  for (const Bound& b : open) {
    const std::optional<int64_t> s = slope(b.at, loops_[lane_loop_], c_.facts);
    if (s == 0) {
      guard += (guard.empty() ? "" : " && ") + condition(c_, b);
    } else if (s == 1) {
      if (b.low) first = fmt::format("max({}, -({}))", first, c_.text(b.at));
      if (b.high) last = fmt::format("min({}, {} - ({}))", last, c_.text(b.dim), c_.text(b.at));
    } else {
      return load_by_lane(param, at, pad, nullptr, given);
    }
  }
  if (!guard.empty()) last = fmt::format("({} ? {} : 0)", guard, last);
  const std::string stride = a.step == 1 ? "" : ", " + (a.step_text.empty() ? "0" : a.step_text);
  const std::string f = c_.prelude.use(a.step == 1 ? "load_part" : "gather_part", t, lanes_);
  return define(t, lanes_, loops,
                fmt::format("{}({}{}, {}, {}, {})", f, a.pointer, stride, first, last,
                            stored_literal(*this, t, pad)),
                4);
}

Reg Expression::load_by_lane(int param, const Coords& at, const Number& pad, const Storage* stored,
                             const Reg* given) {
  const DType t = stored ? stored->type.dtype : c_.program.params[param].dtype;
  const Symbol lane = c_.new_loop("lane", 1);
  c_.facts[lane] = c_.facts[loops_[lane_loop_]];
  const std::string counter = c_.symbol_text(loops_[lane_loop_]);
  c_.loop_names[lane.id] = fmt::format("({} + l)", counter);
  Coords per_lane = at;
  uint32_t loops = given ? given->loops : 0;
  for (Expr& e : per_lane) {
    loops |= loops_of(e);
    e = substitute(e, [&](Symbol s) -> std::optional<Expr> {
      if (s == loops_[lane_loop_]) return Expr::symbol(lane);
      return std::nullopt;
    });
  }
  // Addressed as a scalar: its pointer may not be hoisted out of the loop over lanes.
  const int lane_loop = lane_loop_;
  lane_loop_ = -1;
  std::string sum = stored ? stored->name : c_.program.params[param].name;
  std::string guard = given ? " && " + given->text : "";
  const auto add = [&](const Expr& e, const std::string& stride) {
    sum += fmt::format(" + ({}){}", c_.text(e), stride.empty() ? "" : " * " + stride);
  };
  if (stored) {
    Expr flat = 0;
    for (size_t k = 0; k < at.size(); ++k) flat = flat * stored->type.shape[k] + per_lane[k];
    add(simplify(flat, c_.facts), "");
  } else {
    const ParamFacts& facts = c_.specialisation.params[param];
    for (size_t k = 0; k < at.size(); ++k) {
      if (facts.zero_stride >> k & 1) continue;
      add(per_lane[k], static_cast<int>(k) == facts.unit_axis
                           ? ""
                           : fmt::format("{}_s{}", c_.program.params[param].name, k));
    }
    for (const Bound& b : open_bounds(c_, param, per_lane)) guard += " && " + condition(c_, b);
  }
  lane_loop_ = lane_loop;
  const DType held = stored && t != b1 ? register_type(t) : t;
  const std::string outside = stored ? "0" : literal(t, pad).text;
  const std::string inside = active_.empty() ? "true" : fmt::format("l < {}", active_);
  return define_lanes(t, loops,
                      fmt::format("({}{} ? {}({}) : {})", inside, guard,
                                  c_.prelude.use("load", held, 1), sum, outside));
}

Reg Expression::positive(const Expr& known) {
  Expr e = known;
  // n - r is positive where n is, when n is a multiple of more than the largest r.
  for (const Symbol& loop : loops_) {
    const Interval range = bounds(Expr::symbol(loop), c_.facts);
    if (in_lanes(loops_of(e)) || range.lo != 0 || slope(e, loop, c_.facts) != -1) continue;
    const Expr rest = simplify(without(e, loop), c_.facts);
    if (range.hi < divisor(rest, c_.facts)) e = rest;
  }
  if (prove_le(1, e, c_.facts)) return literal(b1, Number{true, 1, 0});
  if (prove_le(e, 0, c_.facts)) return literal(b1, Number{true, 0, 0});
  const uint32_t loops = loops_of(e), limited = loops & limited_;
  if (std::popcount(limited) == 1 && assume_ != Assume::nothing) {
    const int loop = std::countr_zero(limited);
    if (slope(e, loops_[loop], c_.facts) == -1) {
      const Limit limit{loop, 0, simplify(without(e, loops_[loop]), c_.facts)};
      if (assume_ == Assume::outside && loop == outside_.loop && limit.hi == outside_.hi) {
        return literal(b1, Number{true, 0, 0});
      }
      if (assume_ == Assume::inside) {
        add_limit(limit);
        guard_sets_.insert(std::vector<std::string>());
        return literal(b1, Number{true, 1, 0});
      }
    }
  }
  if (!in_lanes(loops)) {
    const Parts parts = c_.prelude.for_thread() ? parts_of(c_, e) : Parts{0, e};
    if (parts.near.is_constant()) return define(b1, 1, loops, fmt::format("{} >= 1", c_.text(e)));
    const Bound below{0 - parts.near, parts.far, false, true};
    return define(b1, 1, loops, near_condition(c_, below, {below.at, 0}));
  }
  if (joined_ > 1) joinable_ = false;
  const std::optional<int64_t> s = slope(e, loops_[lane_loop_], c_.facts);
  const std::string below = c_.prelude.use("below", i32, lanes_);
  if (s == -1) return define(b1, lanes_, loops, fmt::format("{}({})", below, c_.text(e)), 4);
  if (s == 1) {
    return define(b1, lanes_, loops, fmt::format("~{}(1 - ({}))", below, c_.text(e)), 4);
  }
  const Reg wide = index(e, i64);
  return mask_of(define(b1, lanes_, loops, wide.text + " >= 1", 8), 4);
}

}  // namespace tw::cpu
