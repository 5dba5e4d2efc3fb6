#include <algorithm>

#include "tests/fuzz/bugs.h"

namespace tw::test {

namespace {

/// A bug that rewrites ops one by one; `edit` says whether it changed the op.
Bug at_ops(const char* name, std::function<bool(Program&, Op&)> edit) {
  Hooks h;
  h.program = [edit](Program& p) {
    bool changed = false;
    walk(p, [&](Op& op) { changed = edit(p, op) || changed; });
    return changed;
  };
  return {name, h};
}

/// A bug that rewrites lists of ops, every region's after those inside it.
Bug at_lists(const char* name, std::function<bool(Program&, std::vector<Op>&)> edit) {
  Hooks h;
  h.program = [edit](Program& p) {
    bool changed = edit(p, p.body.ops);
    walk(p, [&](Op& op) {
      for (Region& r : op.regions) changed = edit(p, r.ops) || changed;
    });
    return changed;
  };
  return {name, h};
}

bool recode(Op& op, Opcode from, Opcode to) {
  if (op.code != from) return false;
  op.code = to;
  return true;
}

bool is_float_op(const Program& p, const Op& op) { return is_float(p.type(op.in[0]).dtype); }

bool swap_sides(Program&, Op& op) {
  if (op.code != Opcode::if_) return false;
  std::swap(op.regions[0], op.regions[1]);
  return true;
}

bool weaken_condition(Program&, Op& op) {
  if (op.code != Opcode::if_ || op.as<CondAttr>().kind != CompareKind::lt) return false;
  op.as<CondAttr>().kind = CompareKind::le;
  return true;
}

bool drop_last_iteration(Program&, Op& op) {
  if (op.code != Opcode::for_) return false;
  LoopAttr& a = op.as<LoopAttr>();
  a.hi = a.hi - a.step;
  return true;
}

bool step_by_one(Program&, Op& op) {
  if (op.code != Opcode::for_ || op.as<LoopAttr>().step == Expr(1)) return false;
  op.as<LoopAttr>().step = 1;
  return true;
}

/// The loop over the blocks of k ends after the first of them.
bool first_block_only(Program&, Op& op) {
  if (op.code != Opcode::for_) return false;
  const std::vector<Op>& body = op.regions[0].ops;
  const bool sums =
      std::any_of(body.begin(), body.end(), [](const Op& x) { return x.code == Opcode::dot; });
  if (!sums) return false;
  LoopAttr& a = op.as<LoopAttr>();
  a.hi = min(a.hi, a.lo + a.step);
  return true;
}

/// The last carried value is never updated.
bool stale_carried(Program&, Op& op) {
  if (op.code != Opcode::for_ || op.in.empty()) return false;
  Region& r = op.regions[0];
  if (r.yields.back() == r.args.back()) return false;
  r.yields.back() = r.args.back();
  return true;
}

/// Carried values move one after the other, so a later one sees the new value of an earlier one.
bool carried_in_turn(Program&, Op& op) {
  if (op.code != Opcode::for_) return false;
  Region& r = op.regions[0];
  bool changed = false;
  for (size_t later = 1; later < r.yields.size(); ++later)
    for (size_t k = 0; k < later; ++k)
      if (r.yields[later] == r.args[k] && r.yields[k] != r.args[k]) {
        r.yields[later] = r.yields[k];
        changed = true;
      }
  return changed;
}

bool forget_pad(Program&, Op& op) {
  if (op.code != Opcode::load) return false;
  Number& pad = op.as<ViewAttr>().pad;
  if (pad.as_double() == 0) return false;
  pad = pad.integral ? Number{} : Number{false, 0, 0};
  return true;
}

/// Operands of dot that end inside their tile are not filled up with zeros.
bool tail_of_k_not_cleared(Program&, std::vector<Op>& ops) {
  bool changed = false;
  for (const Op& dot : ops) {
    if (dot.code != Opcode::dot) continue;
    for (Op& load : ops) {
      const bool feeds =
          load.code == Opcode::load && (load.out[0] == dot.in[0] || load.out[0] == dot.in[1]);
      if (!feeds) continue;
      Number& pad = load.as<ViewAttr>().pad;
      pad = pad.integral ? Number{true, 1, 0} : Number{false, 0, 1};
      changed = true;
    }
  }
  return changed;
}

/// x + c becomes x + (c + 1).
bool window_off_by_one(Program&, Op& op) {
  if (op.code != Opcode::load && op.code != Opcode::store) return false;
  for (Expr& e : op.as<ViewAttr>().view.origin)
    if (e.kind() == Expr::Kind::add && e.rhs().is_constant()) {
      e = e + 1;
      return true;
    }
  return false;
}

bool fixed_axis_at_zero(Program&, Op& op) {
  if (op.code != Opcode::load) return false;
  View& v = op.as<ViewAttr>().view;
  for (size_t k = 0; k < v.origin.size(); ++k) {
    const bool fixed = std::find(v.axes.begin(), v.axes.end(), static_cast<int>(k)) == v.axes.end();
    if (!fixed || v.origin[k] == Expr(0)) continue;
    v.origin[k] = 0;
    return true;
  }
  return false;
}

/// The data stays where it is; only the extents are exchanged.
bool transpose_only_extents(Program& p, Op& op) {
  if (op.code != Opcode::transpose) return false;
  const Extents& e = p.type(op.in[0]).shape;
  if (std::count_if(e.begin(), e.end(), [](int64_t n) { return n > 1; }) < 2) return false;
  op.code = Opcode::reshape;
  op.attr = NoneAttr{};
  return true;
}

/// Rewrites an op as several that give its result.
bool expand(std::vector<Op>& ops, const std::function<bool(const Op&)>& applies,
            const std::function<std::vector<Op>(const Op&)>& instead) {
  bool changed = false;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!applies(ops[i])) continue;
    const std::vector<Op> list = instead(ops[i]);
    ops.erase(ops.begin() + static_cast<int64_t>(i));
    ops.insert(ops.begin() + static_cast<int64_t>(i), list.begin(), list.end());
    i += list.size() - 1;
    changed = true;
  }
  return changed;
}

Op simple(Program& p, Opcode code, std::vector<ValueId> in, const Type& type) {
  return Op{code, {}, std::move(in), {p.new_value(type, {})}, NoneAttr{}, {}};
}

/// -a as 0 - a, which gives +0 for 0.
bool negate_by_subtraction(Program& p, std::vector<Op>& ops) {
  return expand(
      ops, [&](const Op& op) { return op.code == Opcode::neg && is_float_op(p, op); },
      [&](const Op& op) {
        Op zero = simple(p, Opcode::full, {}, p.type(op.in[0]));
        zero.attr = FullAttr{Number{false, 0, 0}};
        Op sub = op;
        sub.code = Opcode::sub;
        sub.in = {zero.out[0], op.in[0]};
        return std::vector<Op>{zero, sub};
      });
}

DType unsigned_of(DType t) { return t == i8 ? u8 : t == i16 ? u16 : t == i32 ? u32 : u64; }

/// A shift that brings in zeros where it should copy the sign.
bool logical_shift(Program& p, std::vector<Op>& ops) {
  return expand(
      ops,
      [&](const Op& op) { return op.code == Opcode::shr && is_signed_int(p.type(op.in[0]).dtype); },
      [&](const Op& op) {
        const auto as_unsigned = [&](ValueId v) {
          const Type& t = p.type(v);
          return simple(p, Opcode::bitcast, {v}, {unsigned_of(t.dtype), t.shape});
        };
        const Op a = as_unsigned(op.in[0]), b = as_unsigned(op.in[1]);
        const Type& out = p.type(op.out[0]);
        const Op shift =
            simple(p, Opcode::shr, {a.out[0], b.out[0]}, {unsigned_of(out.dtype), out.shape});
        const Op back{Opcode::bitcast, {}, {shift.out[0]}, op.out, NoneAttr{}, {}};
        return std::vector<Op>{a, b, shift, back};
      });
}

/// a != b as a < b or b < a, which a NaN is not.
bool unequal_by_order(Program& p, std::vector<Op>& ops) {
  return expand(
      ops,
      [&](const Op& op) {
        return op.code == Opcode::ne && is_float_op(p, op) && bytes(p.type(op.in[0]).dtype) > 1;
      },
      [&](const Op& op) {
        const Type& t = p.type(op.out[0]);
        const Op below = simple(p, Opcode::lt, {op.in[0], op.in[1]}, t);
        const Op above = simple(p, Opcode::lt, {op.in[1], op.in[0]}, t);
        const Op either{Opcode::or_, {}, {below.out[0], above.out[0]}, op.out, NoneAttr{}, {}};
        return std::vector<Op>{below, above, either};
      });
}

bool cast_truncates(Program& p, Op& op) {
  if (op.code != Opcode::cast || !is_float_op(p, op)) return false;
  const DType to = p.type(op.out[0]).dtype;
  CastAttr& a = op.as<CastAttr>();
  if (!is_float(to) || bytes(to) > 2 || a.rounding != Rounding::RN) return false;
  a.rounding = Rounding::RZ;
  return true;
}

bool cast_saturates_e4m3(Program& p, Op& op) {
  if (op.code != Opcode::cast || !is_float_op(p, op)) return false;
  if (p.type(op.out[0]).dtype != e4m3 || op.as<CastAttr>().saturate) return false;
  op.as<CastAttr>().saturate = true;
  return true;
}

bool dot_starts_anew(Program& p, std::vector<Op>& ops) {
  return expand(
      ops, [&](const Op& op) { return op.code == Opcode::dot; },
      [&](const Op& op) {
        const Type& t = p.type(op.in[2]);
        Op zero = simple(p, Opcode::full, {}, t);
        zero.attr = FullAttr{is_float(t.dtype) ? Number{false, 0, 0} : Number{}};
        Op dot = op;
        dot.in[2] = zero.out[0];
        return std::vector<Op>{zero, dot};
      });
}

/// A load of what a store before it wrote is taken for pure and hoisted over the store.
bool load_before_store(Program&, std::vector<Op>& ops) {
  for (size_t i = 1; i < ops.size(); ++i)
    if (ops[i].code == Opcode::load && ops[i - 1].code == Opcode::store &&
        ops[i].as<ViewAttr>().view.param == ops[i - 1].as<ViewAttr>().view.param) {
      std::swap(ops[i], ops[i - 1]);
      return true;
    }
  return false;
}

bool iota_other_axis(Program& p, Op& op) {
  if (op.code != Opcode::iota || p.type(op.out[0]).shape.size() < 2) return false;
  int& axis = op.as<AxisAttr>().axis;
  axis = axis == 0 ? 1 : 0;
  return true;
}

bool swap_where(Program&, Op& op) {
  if (op.code != Opcode::where || op.in[1] == op.in[2]) return false;
  std::swap(op.in[1], op.in[2]);
  return true;
}

}  // namespace

std::vector<Bug> program_bugs() {
  return {
      at_ops("sides of a branch swapped", swap_sides),
      at_ops("branch on < taken for <=", weaken_condition),
      at_ops("last iteration of a loop dropped", drop_last_iteration),
      at_ops("step of a loop ignored", step_by_one),
      at_ops("what follows a loop over k comes after its first block", first_block_only),
      at_ops("carried value stale", stale_carried),
      at_ops("carried values assigned in turn", carried_in_turn),
      at_ops("pad ignored", forget_pad),
      at_ops("offset of a window off by one", window_off_by_one),
      at_ops("coordinate of a fixed axis ignored", fixed_axis_at_zero),
      at_ops("transpose moves no data", transpose_only_extents),
      at_ops("maximum drops NaN",
             [](Program&, Op& op) { return recode(op, Opcode::max, Opcode::max_num); }),
      at_ops("arms of where swapped", swap_where),
      at_ops("cast truncates", cast_truncates),
      at_ops("cast to e4m3 saturates", cast_saturates_e4m3),
      at_ops("iota along another axis", iota_other_axis),
      at_lists("negation loses -0", negate_by_subtraction),
      at_lists("arithmetic shift brings in zeros", logical_shift),
      at_lists("NaN equals itself under !=", unequal_by_order),
      at_lists("dot drops what it accumulates on", dot_starts_anew),
      at_lists("tail of k not cleared", tail_of_k_not_cleared),
      at_lists("load moved over a store", load_before_store),
  };
}

}  // namespace tw::test
