#include "tw/emit/cpu/places.h"

#include <fmt/format.h>

#include "tw/emit/cpu/nest.h"
#include "tw/emit/cpu/op_table.h"
#include "tw/ir/infer.h"

namespace tw::cpu {
namespace {

Reg both(Expression& e, const std::optional<Reg>& a, const Reg& b) {
  return a ? e.combine("$0 && $1", b1, {*a, b}) : b;
}

/// A coordinate as an expression, where the address then steps evenly or not at all along lanes.
/// What divisions and tiles in memory give is only looked through to find a step: a register is
/// computed once where a division would be done at every use.
std::optional<Expr> as_coordinate(Expression& e, ValueId v, const Coords& at) {
  if (const std::optional<Expr> sum = as_index(e, v, at)) return sum;
  const std::optional<Expr> any = as_index(e, v, at, Through::everything);
  if (!any || e.surveying()) return any;
  if (e.lane_loop() < 0) return std::nullopt;
  const Symbol lane = e.counter(e.lane_loop());
  return mentions(*any, lane) && slope(*any, lane, e.context().facts) ? any : std::nullopt;
}

/// Text of an element's address, and of what must hold for it to be there ("" for nothing). Of lane
/// `l` where there are lanes.
struct Lane {
  std::string pointer, inside;
};

class LaneText {
 public:
  LaneText(Expression& e, const Places& p) : e_(e), c_(e.context()), p_(p) {}

  Lane text() {
    if (e_.lane_loop() >= 0) make_lane();
    const Param& param = c_.program.params[p_.param];
    const ParamFacts& facts = c_.specialisation.params[p_.param];
    Lane r{param.name, p_.inside ? p_.inside->text : ""};
    for (size_t axis = 0; axis < p_.at.size(); ++axis) {
      const std::string at = coordinate(axis, r.inside);
      if (facts.zero_stride >> axis & 1) continue;
      const bool unit = static_cast<int>(axis) == facts.unit_axis;
      if (unit && at == "0") continue;
      r.pointer +=
          fmt::format(" + ({}){}", at, unit ? "" : fmt::format(" * {}_s{}", param.name, axis));
    }
    return r;
  }

 private:
  void make_lane() {
    const Symbol counter = e_.counter(e_.lane_loop());
    const SymbolFact fact = c_.facts[counter];
    lane_ = c_.new_symbol(fmt::format("({} + l)", c_.symbol_text(counter)), fact);
  }

  std::string coordinate(size_t axis, std::string& inside) {
    const Expr& dim = c_.program.params[p_.param].dims[axis];
    const auto require = [&](const std::string& check) {
      inside += (inside.empty() ? "" : " && ") + check;
    };
    if (const auto reg = p_.lanes.find(axis); reg != p_.lanes.end()) {
      const std::string x = fmt::format("{}[l]", reg->second.text);
      require(fmt::format("{0} >= 0 && {0} < {1}", x, c_.text(dim)));
      return x;
    }
    Expr at = p_.at[axis];
    if (lane_) {
      const Symbol counter = e_.counter(e_.lane_loop());
      at = substitute(at, [&](Symbol s) {
        return s == counter ? std::optional(Expr::symbol(*lane_)) : std::nullopt;
      });
    }
    if (const auto open = open_bound(c_, at, dim)) require(condition(c_, *open));
    return c_.text(at);
  }

  Expression& e_;
  Context& c_;
  const Places& p_;
  std::optional<Symbol> lane_;
};

uint32_t loops_of_places(const Expression& e, const Places& p) {
  uint32_t loops = p.inside ? p.inside->loops : 0;
  for (const Expr& x : p.at) loops |= e.loops_of(x);
  for (const auto& [axis, reg] : p.lanes) loops |= reg.loops;
  return loops;
}

/// What is done with one element: a store, or an atomic.
class Update {
 public:
  Update(Expression& e, const Reg& value, const Op& op, const Storage* old, const Coords& at,
         const std::string& active)
      : e_(e),
        c_(e.context()),
        value_(value),
        op_(op),
        old_(old),
        at_(at),
        active_(active),
        t_(c_.program.params[view_of(op)->param].dtype) {}

  void write() {
    if (e_.survey) return survey();
    const PlaceOperands in = place_operands(op_);
    if (in.mask) mask_ = e_.value(*in.mask, at_);
    if (in.expected) expected_ = e_.value(*in.expected, at_);
    Places p = places_of(e_, op_, at_);
    if (mask_ && mask_->text == "false") return keep_old("");
    if (mask_ && mask_->text == "true") mask_.reset();
    if (mask_ && mask_->lanes == 1) {
      p.inside = both(e_, p.inside, *mask_);
      mask_.reset();
    }
    if (e_.lane_loop() < 0) return one(p);
    if (!in_whole_lanes(p)) each_lane(p);
  }

 private:
  void survey() {
    const PlaceOperands in = place_operands(op_);
    if (in.mask) e_.value(*in.mask, at_);
    if (in.expected) e_.value(*in.expected, at_);
    const Places p = places_of(e_, op_, at_);
    e_.sizes.emplace_back(bytes(register_type(t_)), UINT32_MAX);
    e_.load(p.param, p.at, Number{!is_float(t_), 0, 0});
  }

  /// `lane`: what picks one lane of a register.
  std::string update(const std::string& pointer, const std::string& x, const std::string& lane) {
    if (op_.code == Opcode::scatter)
      return fmt::format("{}({}, {})", c_.prelude.use("store", t_, 1), pointer, x);
    const auto& how = op_.as<AtomicAttr>();
    const bool own = c_.scratch_at.contains(how.view.param);
    std::string expected;
    if (expected_)
      expected = ", " + (expected_->lanes > 1 ? named(*expected_) + lane : expected_->text);
    return fmt::format("{}({}, {}{})", use_atomic(c_.prelude, how, t_, own), pointer, x, expected);
  }

  void one(const Places& p) {
    const Lane lane = LaneText(e_, p).text();
    const std::string done = update(lane.pointer, value_.text, "");
    if (old_) return keep_old(lane.inside.empty() ? done : lane.inside + " ? " + done + " : 0");
    line(lane.inside.empty() ? done : fmt::format("if ({}) {}", lane.inside, done));
  }

  /// Stores what an atomic gave ("": 0, as nothing was done).
  void keep_old(const std::string& text) {
    if (!old_) return;
    const std::string x = text.empty() ? "0" : text;
    if (old_->variable()) return line(fmt::format("{} = {}", old_->name, x));
    const Expression::Address a = e_.address(*old_, at_);
    line(fmt::format("*({}) = {}", a.pointer, x));
  }

  /// Lanes side by side, all inside or all not.
  bool in_whole_lanes(const Places& p) {
    if (op_.code != Opcode::scatter || !p.lanes.empty() || mask_ || !active_.empty()) return false;
    const Expression::Address a = e_.address(p.param, p.at);
    if (a.step != 1 || !e_.grant(p.param, p.at)) return false;
    const Reg w = value_.dtype == b1 ? e_.mask_of(value_, 4) : e_.widen(value_);
    const std::string f = c_.prelude.use("store", t_, e_.lanes());
    const std::string done = fmt::format("{}({}, {})", f, a.pointer, w.text);
    line(p.inside ? fmt::format("if ({}) {}", p.inside->text, done) : done);
    return true;
  }

  void each_lane(const Places& p) {
    const Lane lane = LaneText(e_, p).text();
    std::string x = value_.text, inside = lane.inside;
    if (value_.lanes > 1) x = named(value_) + (value_.dtype == b1 ? "[l] != 0" : "[l]");
    if (mask_)
      inside = fmt::format("{}[l]{}", named(*mask_), inside.empty() ? "" : " && " + inside);
    const std::string count = active_.empty() ? std::to_string(e_.lanes())
                                              : fmt::format("min({}, {})", active_, e_.lanes());
    const std::string done = update(lane.pointer, x, "[l]");
    line(fmt::format("for (i64 l = 0; l < {}; ++l) {}{}", count,
                     inside.empty() ? "" : fmt::format("if ({}) ", inside), done));
  }

  /// Lanes of a register are read by their place: it needs a name.
  std::string named(const Reg& r) { return fmt::format("({})", r.text); }

  void line(const std::string& text) { e_.body(e_.depth()).line(text + ";"); }

  Expression& e_;
  Context& c_;
  const Reg& value_;
  const Op& op_;
  const Storage* old_;
  const Coords& at_;
  const std::string& active_;
  const DType t_;
  std::optional<Reg> mask_, expected_;
};

const char* order_text(MemoryOrder order) {
  switch (order) {
    case MemoryOrder::relaxed:
      return "__ATOMIC_RELAXED";
    case MemoryOrder::acquire:
      return "__ATOMIC_ACQUIRE";
    case MemoryOrder::release:
      return "__ATOMIC_RELEASE";
    case MemoryOrder::acq_rel:
      return "__ATOMIC_ACQ_REL";
  }
  return "";
}

const char* const kBuiltinText =
    R"(TW_INLINE $T $name($T* p, $T v) { return $builtin(p, v, $order); })";
const char* const kExchangeText = R"(TW_INLINE $T $name($T* p, $T v) {
  $T old;
  __atomic_exchange(p, &v, &old, $order);
  return old;
})";
const char* const kLoopText = R"(TW_INLINE $T $name($T* p, $T v) {
  $T old;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  for (;;) {
    $T next = $next;
    if (__atomic_compare_exchange(p, &old, &next, true, $order, __ATOMIC_RELAXED)) return old;
  }
})";

const char* const kCompareText = R"(TW_INLINE $T $name($T* p, $T v, $T expected) {
  __atomic_compare_exchange_n(p, &expected, v, false, $order, $failure);
  return expected;
})";
const char* const kOwnCompareText = R"(TW_INLINE $T $name($T* p, $T v, $T expected) {
  const $T old = *p;
  if (old == expected) *p = v;
  return old;
})";
const char* const kOwnText = R"(TW_INLINE $T $name($T* p, $T v) {
  const $T old = *p;
  *p = $next;
  return old;
})";

/// The builtin that does the update of an integer; none for what takes a loop.
const char* builtin_of(AtomicOp op) {
  switch (op) {
    case AtomicOp::add:
      return "__atomic_fetch_add";
    case AtomicOp::and_:
      return "__atomic_fetch_and";
    case AtomicOp::or_:
      return "__atomic_fetch_or";
    case AtomicOp::xor_:
      return "__atomic_fetch_xor";
    case AtomicOp::min:
    case AtomicOp::max:
    case AtomicOp::exch:
    case AtomicOp::cas:
      return nullptr;
  }
  return nullptr;
}

const char* sign_of(AtomicOp op) {
  return op == AtomicOp::add ? "+" : op == AtomicOp::and_ ? "&" : op == AtomicOp::or_ ? "|" : "^";
}

/// What the update makes of the variables `old` and `v`.
std::string next_of(Prelude& prelude, AtomicOp op, DType t) {
  if (op == AtomicOp::exch) return "v";
  const bool least = op == AtomicOp::min;
  if (!least && op != AtomicOp::max) {
    if (is_float(t)) return "old + v";
    const std::string type = prelude.type(t);
    const std::string wraps = prelude.type(unsigned_of_bytes(bytes(t)));
    return fmt::format("({0})(({1})old {2} ({1})v)", type, wraps, sign_of(op));
  }
  const char* f = is_float(t) ? (least ? "min" : "max") : (least ? "lesser" : "greater");
  return fmt::format("{}(old, v)", prelude.use(f, t, 1));
}

/// A failed exchange only loads.
const char* failure_text(MemoryOrder order) {
  const bool acquires = order == MemoryOrder::acquire || order == MemoryOrder::acq_rel;
  return order_text(acquires ? MemoryOrder::acquire : MemoryOrder::relaxed);
}

/// Of memory that only this thread sees.
std::string use_own(Prelude& prelude, AtomicOp op, DType t) {
  const std::string f = fmt::format("tw_update_{}_{}", name(op), name(t));
  Fill values{{"T", prelude.type(t)}, {"name", f}};
  if (op != AtomicOp::cas) values.emplace_back("next", next_of(prelude, op, t));
  prelude.add(f, fill(op == AtomicOp::cas ? kOwnCompareText : kOwnText, values));
  return f;
}

}  // namespace

// Threads of a GPU have functions for it (tw/emit/cuda). Of those of a process the scope is not
// looked at: they share one memory.
std::string use_atomic(Prelude& prelude, const AtomicAttr& how, DType t, bool own) {
  if (prelude.for_thread()) {
    return prelude.outside(
        fmt::format("tw_atomic_{}_{}_{}", name(how.op), name(how.order), name(how.scope)));
  }
  if (own) return use_own(prelude, how.op, t);
  const std::string f = fmt::format("tw_atomic_{}_{}_{}", name(how.op), name(t), name(how.order));
  Fill values{{"T", prelude.type(t)}, {"name", f}, {"order", order_text(how.order)}};
  const char* builtin = is_float(t) ? nullptr : builtin_of(how.op);
  const char* text = builtin ? kBuiltinText : kLoopText;
  if (how.op == AtomicOp::exch) {
    text = kExchangeText;
  } else if (how.op == AtomicOp::cas) {
    text = kCompareText;
    values.emplace_back("failure", failure_text(how.order));
  } else if (builtin) {
    values.emplace_back("builtin", builtin);
  } else {
    values.emplace_back("next", next_of(prelude, how.op, t));
  }
  prelude.add(f, fill(text, values));
  return f;
}

Places places_of(Expression& e, const Op& op, const Coords& at) {
  Context& c = e.context();
  const View& view = *view_of(op);
  const std::vector<ValueId> coordinates = place_operands(op).at;
  Places p{view.param, Coords(view.origin.begin(), view.origin.end()), {}, {}};
  for (size_t k = 0; k < coordinates.size(); ++k) {
    const auto axis = static_cast<size_t>(view.axes[k]);
    if (const std::optional<Expr> known = as_coordinate(e, coordinates[k], at)) {
      p.at[axis] = *known;
      continue;
    }
    const Reg x = e.value(coordinates[k], at);
    if (x.lanes > 1) {
      p.lanes[axis] = e.define(x.dtype, x.lanes, x.loops, x.text);
      continue;
    }
    // Where it lies outside, 0 stands for it: no address is formed outside the tensor.
    const Expr& dim = c.program.params[view.param].dims[axis];
    const Reg inside =
        e.define(b1, 1, x.loops, fmt::format("{0} >= 0 && {0} < {1}", x.text, c.text(dim)));
    const Reg clamped = e.define(i64, 1, x.loops, fmt::format("{} ? {} : 0", inside.text, x.text));
    p.at[axis] = e.symbol_of(clamped, dim);
    p.inside = both(e, p.inside, inside);
  }
  return p;
}

Reg load_places(Expression& e, const Places& p, const Number& pad) {
  Context& c = e.context();
  if (p.lanes.empty()) return e.load(p.param, p.at, pad, p.inside ? &*p.inside : nullptr);
  const DType t = c.program.params[p.param].dtype;
  const Lane lane = LaneText(e, p).text();
  std::string inside = lane.inside;
  if (!e.active().empty()) inside = fmt::format("l < {} && {}", e.active(), inside);
  return e.define_lanes(t, loops_of_places(e, p),
                        fmt::format("({} ? {}({}) : {})", inside, c.prelude.use("load", t, 1),
                                    lane.pointer, e.literal(t, pad).text));
}

void write_place(Expression& e, const Reg& value, const Op& op, const Storage* old,
                 const Coords& at, const std::string& active) {
  Update(e, value, op, old, at, active).write();
}

}  // namespace tw::cpu
