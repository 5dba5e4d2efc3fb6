#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "tw/base/error.h"
#include "tw/emit/cpu/contract.h"
#include "tw/emit/cpu/nest.h"
#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cpu/tell.h"
#include "tw/ir/infer.h"

namespace tw::cpu {
namespace {

/// How many operands and yields read the value, anywhere.
int uses(const Program& p, ValueId v) {
  int n = 0;
  const std::function<void(const Region&)> visit = [&](const Region& r) {
    for (const Op& op : r.ops) {
      for (const ValueId x : op.in) n += x == v;
      for (const Region& inner : op.regions) visit(inner);
    }
    for (const ValueId x : r.yields) n += x == v;
  };
  visit(p.body);
  return n;
}

/// Scratch reserved in a region is free again after it.
class ScratchScope {
 public:
  explicit ScratchScope(Context& c) : c_(c), before_(c.scratch) {}
  ~ScratchScope() { c_.scratch = before_; }

 private:
  Context& c_;
  int64_t before_;
};

/// Scalars are computed into `next` first, arrays written after, scalars assigned last: no yield
/// sees another's new value. (place_tiles keeps array yields that would.)
void emit_yields(Context& c, const Region& r, const std::vector<ValueId>& targets, Writer& out) {
  std::vector<std::pair<std::string, std::string>> scalars;
  for (size_t k = 0; k < targets.size(); ++k) {
    const Storage& target = c.storage.at(targets[k]);
    if (!target.variable() || r.yields[k] == targets[k]) continue;
    Expression e(c);
    const Coords at(target.type.shape.size(), Expr(0));
    const Reg value = e.value(r.yields[k], at);
    out.append(e.body(0));
    const std::string next = c.fresh("next");
    out.line(fmt::format("const {} {} = {};", c.prelude.type(register_type(target.type.dtype)),
                         next, value.text));
    scalars.emplace_back(target.name, next);
  }
  for (size_t k = 0; k < targets.size(); ++k) {
    const Storage& target = c.storage.at(targets[k]);
    if (target.variable()) continue;
    const auto from = c.storage.find(r.yields[k]);
    if (from != c.storage.end() && from->second.name == target.name) continue;
    emit_elements(c, r.yields[k], {nullptr, &target}, out);
  }
  for (const auto& [name, next] : scalars) out.line(fmt::format("{} = {};", name, next));
}

/// Carried values lie where the loop's results do.
void emit_first(Context& c, const Op& op, Writer& out) {
  const Region& body = op.regions[0];
  for (size_t k = 0; k < op.out.size(); ++k) {
    c.storage[body.args[k]] = c.reserve(op.out[k], out);
    emit_elements(c, op.in[k], {nullptr, &c.storage.at(op.out[k])}, out);
  }
}

void emit_iteration(Context& c, const Region& body, Writer& out) {
  const ScratchScope scope(c);
  emit_region(c, body, out);
  emit_yields(c, body, body.args, out);
  out.close();
}

void emit_while(Context& c, const Op& op, Writer& out) {
  emit_first(c, op, out);
  out.open(fmt::format("while ({}) {{", c.storage.at(op.out[0]).name));
  emit_iteration(c, op.regions[0], out);
}

void emit_for(Context& c, const Op& op, Writer& out) {
  const LoopAttr& a = op.as<LoopAttr>();
  emit_first(c, op, out);
  const std::string i = c.loop_names.at(a.loop);
  out.line(fmt::format("const i64 {}_end = {};", i, c.text(a.hi)));
  out.open(fmt::format("for (i64 {0} = {1}; {0} < {0}_end; {0} += {2}) {{", i, c.text(a.lo),
                       c.text(a.step)));
  emit_iteration(c, op.regions[0], out);
}

void emit_if(Context& c, const Op& op, Writer& out) {
  const CondAttr& a = op.as<CondAttr>();
  const char* sign = a.kind == CompareKind::lt   ? "<"
                     : a.kind == CompareKind::le ? "<="
                     : a.kind == CompareKind::eq ? "=="
                                                 : "!=";
  for (const ValueId v : op.out) c.reserve(v, out);
  out.open(fmt::format("if ({} {} {}) {{", c.text(a.a), sign, c.text(a.b)));
  for (size_t k = 0; k < op.regions.size(); ++k) {
    if (k == 1) {
      out.close("} else {");
      out.deeper();
    }
    const ScratchScope scope(c);
    emit_region(c, op.regions[k], out);
    emit_yields(c, op.regions[k], op.out, out);
  }
  out.close();
}

/// Whether the op stands in the region once an iteration at most: not in a loop of its own.
bool stands_in(const Region& r, const Op& op) {
  return std::ranges::any_of(r.ops, [&](const Op& o) {
    if (&o == &op) return true;
    return o.code == Opcode::if_ &&
           std::ranges::any_of(o.regions, [&](const Region& side) { return stands_in(side, op); });
  });
}

/// Whether a loop carries v and the op is done once in each of its iterations.
bool carried_past(const Program& p, ValueId v, const Op& op) {
  bool found = false;
  walk(p, [&](const Op& loop) {
    if (!is_loop(loop.code)) return;
    const Region& body = loop.regions[0];
    found = found || (std::ranges::find(body.args, v) != body.args.end() && stands_in(body, op));
  });
  return found;
}

/// The carried tile that a sum may overwrite, as nothing else reads it: operand 2 of the dot, or
/// the one that operand 2 is made of element by element.
std::optional<ValueId> overwritten(const Context& c, const Op& dot) {
  const ValueId acc = dot.in[2];
  if (uses(c.program, acc) != 1) return std::nullopt;
  ValueId carried = acc;
  if (const Op* made = c.def[acc]) {
    const Extents& shape = c.program.type(acc).shape;
    if (!is_elementwise(made->code) || c.storage.contains(acc)) return std::nullopt;
    const auto whole = std::ranges::find_if(made->in, [&](ValueId v) {
      return c.def[v] == nullptr && c.program.type(v).shape == shape;
    });
    if (whole == made->in.end() || uses(c.program, *whole) != 1) return std::nullopt;
    carried = *whole;
  }
  const auto known = c.storage.find(carried);
  const bool array = known != c.storage.end() && !known->second.variable() &&
                     known->second.type == c.program.type(dot.out[0]);
  return array && carried_past(c.program, carried, dot) ? std::optional(carried) : std::nullopt;
}

/// A product is added where its sum lies when nothing else reads the old sum. (place_tiles keeps
/// yields that would read it while it is written.)
void emit_kept_dot(Context& c, const Op& op, Writer& out) {
  if (const std::optional<ValueId> sum = overwritten(c, op)) {
    c.storage[op.out[0]] = Storage(c.storage.at(*sum));
  } else {
    c.reserve(op.out[0], out);
  }
  emit_dot(c, op, c.storage.at(op.out[0]), out);
}

void emit_store(Context& c, const Op& op, Writer& out) {
  emit_elements(c, op.in[0], {&op.as<ViewAttr>().view, nullptr}, out);
}

void emit_scatter(Context& c, const Op& op, Writer& out) {
  emit_elements(c, *place_operands(op).value, {.place = &op}, out);
}

void emit_atomic(Context& c, const Op& op, Writer& out) {
  if (op.out.empty()) return emit_scatter(c, op, out);
  c.reserve(op.out[0], out);
  const Storage& old = c.storage.at(op.out[0]);
  emit_elements(c, *place_operands(op).value, {.storage = &old, .place = &op}, out);
}

void emit_keep(Context& c, const Op& op, Writer& out) {
  const Storage target = c.reserve(op.out[0], out);
  c.storage.erase(op.out[0]);
  emit_elements(c, op.in[0], {nullptr, &target}, out);
  c.storage[op.out[0]] = target;
}

using EmitStatement = void (*)(Context& c, const Op& op, Writer& out);

const std::pair<Opcode, EmitStatement> kStatements[] = {
    {Opcode::store, emit_store},     {Opcode::keep, emit_keep},
    {Opcode::reduce, emit_reduce},   {Opcode::scan, emit_scan},
    {Opcode::top_k, emit_top_k},     {Opcode::dot, emit_kept_dot},
    {Opcode::for_, emit_for},        {Opcode::while_, emit_while},
    {Opcode::if_, emit_if},          {Opcode::contract, emit_contract},
    {Opcode::scatter, emit_scatter}, {Opcode::atomic, emit_atomic},
    {Opcode::assert_, emit_tell},    {Opcode::print, emit_tell},
};

EmitStatement statement_of(const Op& op) {
  for (const auto& [code, emit] : kStatements) {
    if (code == op.code) return emit;
  }
  throw InternalError(fmt::format("'{}' reached the emitter inside a body", info(op.code).name));
}

/// A run of statements that one nest of loops can do: stores and reductions over tiles of one
/// shape, none of which needs what another gives.
class Group {
 public:
  Group(const Context& c, const Region& r, size_t from) : c_(c) {
    for (size_t i = from; i < r.ops.size(); ++i) {
      const Op& op = r.ops[i];
      if (is_expression(c.program, op)) continue;
      if (!fits(op)) break;
      if (op.code == Opcode::keep) continue;
      members_.push_back(&op);
      end_ = i + 1;
      if (op.code == Opcode::reduce) reduces_ = true;
    }
  }
  bool worth_it() const { return reduces_ && members_.size() > 1; }
  const std::vector<const Op*>& members() const { return members_; }
  size_t end() const { return end_; }

 private:
  /// Whether the value, and what it is computed from through expressions and kept values, needs no
  /// result of the group.
  bool may_compute(ValueId v) {
    if (results_.count(v)) return false;
    const Op* op = c_.def[v];
    if (!op || !computed_.insert(v).second) return true;
    // A load of what instances write stays where it is.
    if (effect(c_.program, *op) == Effect::read) return false;
    if (!is_expression(c_.program, *op) && op->code != Opcode::keep) return true;
    return std::ranges::all_of(op->in, [&](ValueId x) { return may_compute(x); });
  }

  bool fits(const Op& op) {
    const bool reduce = op.code == Opcode::reduce;
    if (!reduce && op.code != Opcode::store && op.code != Opcode::keep) return false;
    if (reduce && op.as<ReduceAttr>().combiner == Combiner::custom) return false;
    if (op.code == Opcode::store && crosses_a_store(op)) return false;
    const Extents& shape = c_.program.type(op.in[0]).shape;
    if (!shape_.empty() && shape != shape_) return false;
    if (shape.empty()) return false;
    if (reduce && axis_ >= 0 && op.as<ReduceAttr>().axis != axis_) return false;
    if (!may_compute(op.in[0])) return false;
    shape_ = shape;
    if (reduce) axis_ = op.as<ReduceAttr>().axis;
    if (reduce) results_.insert(op.out.begin(), op.out.end());
    return true;
  }

  /// Stores to one tensor at different places may meet in an element, where the later one counts.
  bool crosses_a_store(const Op& op) const {
    const View& view = op.as<ViewAttr>().view;
    return std::ranges::any_of(members_, [&](const Op* member) {
      if (member->code != Opcode::store) return false;
      const View& other = member->as<ViewAttr>().view;
      return other.param == view.param && other != view;
    });
  }

  const Context& c_;
  std::vector<const Op*> members_;
  std::set<ValueId> results_;
  std::set<ValueId> computed_;  ///< by the members, on the way to what they store or reduce
  Extents shape_;
  int axis_ = -1;
  bool reduces_ = false;
  size_t end_ = 0;
};

}  // namespace

void emit_region(Context& c, const Region& r, Writer& out) {
  for (size_t i = 0; i < r.ops.size(); ++i) {
    const Op& op = r.ops[i];
    if (is_expression(c.program, op)) continue;
    out.line();
    if (c.debug_lines && op.at.known()) {
      out.line(fmt::format("#line {} \"{}\"", op.at.line, op.at.file));
    }
    const Group group(c, r, i);
    if (group.worth_it()) {
      emit_reduce_group(c, group.members(), out);
      i = group.end() - 1;
    } else {
      statement_of(op)(c, op, out);
    }
  }
}

}  // namespace tw::cpu
