#include <fmt/format.h>

#include "tw/ir/infer.h"
#include "tw/lang/impl/state.h"
#include "tw/lang/ops.h"

namespace tw {
namespace {

ValueId tile_of_trace(const TraceState& t, const Arg& a) {
  if (a.value()->trace.get() != &t) t.fail(a.at(), "the operands belong to two programs");
  return a.value()->id;
}

/// An op at coordinates of a tensor, as far as it is known.
struct Access {
  TraceState& t;
  Opcode code;
  SourceLoc line;
  View view;
  std::vector<ValueId> in;   ///< coordinates, then the value and the mask
  std::vector<Type> at;      ///< of the coordinates
  std::vector<Type> values;  ///< of what is written, and expected
  std::optional<Type> mask;

  const Param& param() const { return t.program.params[static_cast<size_t>(view.param)]; }
  Type result() const {
    const auto infer = [&] { return infer_place(code, at, values, mask, line); };
    return {param().dtype, t.checked(infer)};
  }
};

void add_coordinate(Access& a, const Arg& coordinate) {
  View& v = a.view;
  if (const Index* i = coordinate.index()) return v.origin.push_back(a.t.expr(*i, a.line));
  if (const Constant* c = coordinate.constant()) {
    const auto number = c->as(i64);
    if (!number)
      a.t.fail(a.line, fmt::format("{} is no coordinate of '{}'", c->text(), a.param().name));
    v.origin.emplace_back(number->i);
    return;
  }
  v.axes.push_back(static_cast<int>(v.origin.size()));
  v.origin.emplace_back(0);
  a.in.push_back(tile_of_trace(a.t, coordinate));
  a.at.push_back(a.t.type(a.in.back()));
}

Access access(Opcode code, const TensorRef& x, const std::vector<Arg>& at, SourceLoc line) {
  TraceState& t = *x.trace();
  t.check_open(line);
  Access a{t, code, line, {x.param(), {}, {}}, {}, {}, {}, {}};
  const Param& p = a.param();
  const size_t rank = p.dims.size(), fixed = x.fixed().size();
  if (fixed > rank) t.fail(line, fmt::format("'{}' has {} axes, [] fixes {}", p.name, rank, fixed));
  if (fixed + at.size() != rank)
    t.fail(line, fmt::format("{} of '{}', which has {} axes here, got {} coordinates",
                             info(code).name, p.name, rank - fixed, at.size()));
  if (code != Opcode::gather && p.kind == ParamKind::in)
    t.fail(line, fmt::format("{} into input '{}'", info(code).name, p.name),
           "declare it with k.output or k.inout");
  for (const Index& i : x.fixed()) a.view.origin.push_back(t.expr(i, line));
  for (const Arg& coordinate : at) add_coordinate(a, coordinate);
  return a;
}

/// A number takes the rank of the coordinates.
void add_value(Access& a, const Arg& value) {
  const DType want = a.param().dtype;
  const size_t rank = a.at.empty() ? 0 : a.at[0].shape.size();
  a.in.push_back(operand(a.t, value, {want, Extents(rank, 1)}));
  const Type got = a.t.type(a.in.back());
  a.values.push_back(got);
  if (got.dtype != want)
    a.t.fail(a.line,
             fmt::format("{} of {} into '{}', which holds {}", info(a.code).name, to_string(got),
                         a.param().name, name(want)),
             "cast it");
}

bool add_mask(Access& a, const std::optional<Tile>& mask) {
  if (!mask) return false;
  if (mask->trace().get() != &a.t) a.t.fail(a.line, "the operands belong to two programs");
  a.in.push_back(mask->read(a.line));
  a.mask = a.t.type(a.in.back());
  return true;
}

/// `values`: the new one, and of a cas the expected one.
Op atomic_op(const TensorRef& x, const std::vector<Arg>& at, std::initializer_list<Arg> values,
             AtomicOp op, const AtomicOptions& o, SourceLoc line, Type& result) {
  Access a = access(Opcode::atomic, x, at, line);
  a.t.checked([&] { check_atomic(op, a.param().dtype, line); });
  for (const Arg& value : values) add_value(a, value);
  const bool masked = add_mask(a, o.mask);
  result = a.result();
  return {Opcode::atomic, line, a.in, {}, AtomicAttr{a.view, masked, op, o.order, o.scope}, {}};
}

void refuse_cas(const TensorRef& x, AtomicOp op, SourceLoc line) {
  if (op != AtomicOp::cas) return;
  x.trace()->fail(line, "atomic with AtomicOp::cas", "atomic_cas() takes what is expected, too");
}

}  // namespace

Tile gather(const TensorRef& x, const std::vector<Arg>& at, const GatherOptions& o,
            SourceLoc line) {
  Access a = access(Opcode::gather, x, at, line);
  const bool masked = add_mask(a, o.mask);
  const Type type = a.result();
  const auto pad = o.pad.as(type.dtype);
  if (!pad) a.t.fail(line, fmt::format("pad {} does not fit {}", o.pad.text(), name(type.dtype)));
  return Tile(x.trace(),
              a.t.emit(Opcode::gather, a.in, PlaceAttr{a.view, masked, *pad}, type, line));
}

void scatter(const TensorRef& x, const std::vector<Arg>& at, const Arg& value,
             const ScatterOptions& o, SourceLoc line) {
  Access a = access(Opcode::scatter, x, at, line);
  a.t.checked([&] { check_scatter(a.param(), line); });
  add_value(a, value);
  const bool masked = add_mask(a, o.mask);
  a.result();
  a.t.append({Opcode::scatter, line, a.in, {}, PlaceAttr{a.view, masked, {}}, {}});
}

void atomic(const TensorRef& x, const std::vector<Arg>& at, const Arg& value, AtomicOp op,
            const AtomicOptions& o, SourceLoc line) {
  refuse_cas(x, op, line);
  Type unused;
  x.trace()->append(atomic_op(x, at, {value}, op, o, line, unused));
}

Tile atomic_fetch(const TensorRef& x, const std::vector<Arg>& at, const Arg& value, AtomicOp op,
                  const AtomicOptions& o, SourceLoc line) {
  refuse_cas(x, op, line);
  Type type;
  Op made = atomic_op(x, at, {value}, op, o, line, type);
  return Tile(x.trace(), x.trace()->emit(Opcode::atomic, made.in, made.attr, type, line));
}

Tile atomic_cas(const TensorRef& x, const std::vector<Arg>& at, const Arg& expected,
                const Arg& desired, const AtomicOptions& o, SourceLoc line) {
  Type type;
  Op made = atomic_op(x, at, {desired, expected}, AtomicOp::cas, o, line, type);
  return Tile(x.trace(), x.trace()->emit(Opcode::atomic, made.in, made.attr, type, line));
}

}  // namespace tw
