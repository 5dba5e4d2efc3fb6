#include "tw/interp/interpreter.h"

#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/interp/bounded.h"
#include "tw/interp/fold.h"
#include "tw/interp/impl/machine.h"
#include "tw/ir/infer.h"

namespace tw {

// budget: table, one case an op
void Machine::execute(const Op& op) {
  switch (op.code) {
    case Opcode::full:
      return full(op);
    case Opcode::iota:
      return iota(op);
    case Opcode::index:
      return index(op);
    case Opcode::load:
      return load(op);
    case Opcode::store:
      return store(op);
    case Opcode::gather:
      return gather(op);
    case Opcode::scatter:
      return scatter(op);
    case Opcode::atomic:
      return atomic(op);
    case Opcode::assert_:
      return check(op);
    case Opcode::print:
      return show(op);
    case Opcode::cast:
      return cast(op);
    case Opcode::bitcast:
      return bitcast(op);
    case Opcode::lookup:
      return lookup(op);
    case Opcode::philox:
      return random(op);
    case Opcode::neg:
    case Opcode::abs:
    case Opcode::not_:
    case Opcode::sqrt:
    case Opcode::rsqrt:
    case Opcode::exp:
    case Opcode::exp2:
    case Opcode::log:
    case Opcode::sin:
    case Opcode::cos:
    case Opcode::tanh:
    case Opcode::erf:
    case Opcode::tanh_fast:
    case Opcode::erf_fast:
    case Opcode::floor:
    case Opcode::ceil:
    case Opcode::round:
      return unary(op);
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mul:
    case Opcode::div:
    case Opcode::rem:
    case Opcode::min:
    case Opcode::max:
    case Opcode::min_num:
    case Opcode::max_num:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
    case Opcode::shl:
    case Opcode::shr:
    case Opcode::eq:
    case Opcode::ne:
    case Opcode::lt:
    case Opcode::le:
      return binary(op);
    case Opcode::where:
      return where(op);
    case Opcode::reshape:
      return reshape(op);
    case Opcode::transpose:
      return define(op, transposed(in(op), op.as<PermAttr>().perm));
    case Opcode::broadcast:
      return define(op, broadcast_to(in(op), out_type(op).shape));
    case Opcode::keep:
      return define(op, in(op));
    case Opcode::slice:
      return slice(op);
    case Opcode::reduce:
      return reduce(op);
    case Opcode::scan:
      return scan(op);
    case Opcode::top_k:
      return top_k(op);
    case Opcode::dot:
      return define(
          op, dot(options_.mode, op.as<DotAttr>().precision, in(op, 0), in(op, 1), in(op, 2)));
    case Opcode::for_:
      return for_loop(op);
    case Opcode::while_:
      return while_loop(op);
    case Opcode::if_:
      return branch(op);
    case Opcode::par:
      return par(op);
    case Opcode::contract:
      throw InternalError("the interpreter runs programs before contractions are fused");
  }
}

void Machine::full(const Op& op) {
  TileData t = make_tile(out_type(op));
  std::fill(t.data.begin(), t.data.end(), from_number(t.type.dtype, op.as<FullAttr>().value));
  define(op, std::move(t));
}

void Machine::iota(const Op& op) {
  TileData t = make_tile(out_type(op));
  const auto axis = static_cast<size_t>(op.as<AxisAttr>().axis);
  size_t at = 0;
  for_each_index(t.type.shape, [&](const Extents& i) {
    t.data[at++] = Scalar::of_int(wrap(t.type.dtype, i[axis]));
  });
  define(op, std::move(t));
}

void Machine::index(const Op& op) {
  TileData t = make_tile(out_type(op));
  t.data[0] = Scalar::of_int(wrap(t.type.dtype, value_of(op.as<IndexAttr>().value)));
  define(op, std::move(t));
}

Extents Machine::origin_of(const View& v) const {
  Extents origin;
  for (const Expr& e : v.origin) origin.push_back(value_of(e));
  return origin;
}

Extents Machine::coordinates(const View& v, const Extents& origin,
                             const Extents& tile_index) const {
  Extents at = origin;
  for (size_t k = 0; k < v.axes.size(); ++k) at[static_cast<size_t>(v.axes[k])] += tile_index[k];
  return at;
}

void Machine::load(const Op& op) {
  const View& view = op.as<ViewAttr>().view;
  const ParamMemory& memory = memory_[static_cast<size_t>(view.param)];
  TileData t = make_tile(out_type(op));
  const Scalar outside = from_number(t.type.dtype, op.as<ViewAttr>().pad);
  const Extents origin = origin_of(view);
  size_t at = 0;
  for_each_index(t.type.shape, [&](const Extents& i) {
    const Extents c = coordinates(view, origin, i);
    t.data[at++] = memory.inside(c) ? memory.read(c) : outside;
  });
  define(op, std::move(t));
}

void Machine::store(const Op& op) {
  const View& view = op.as<ViewAttr>().view;
  ParamMemory& memory = memory_[static_cast<size_t>(view.param)];
  const Extents origin = origin_of(view);
  size_t at = 0;
  for_each_index(in(op).type.shape, [&](const Extents& i) {
    const Extents c = coordinates(view, origin, i);
    const Scalar& value = in(op).data[at++];
    if (memory.inside(c)) memory.write(c, value);
  });
}

void Machine::places(const Op& op, const VisitPlace& visit) const {
  const auto tile = [&](ValueId v) -> const TileData& { return values_[v]; };
  for_each_place(op, place_extents(p_, op), origin_of(*view_of(op)), tile, visit);
}

void Machine::gather(const Op& op) {
  const auto& a = op.as<PlaceAttr>();
  const ParamMemory& memory = memory_[static_cast<size_t>(a.view.param)];
  TileData t = make_tile(out_type(op));
  const Scalar pad = from_number(t.type.dtype, a.pad);
  size_t at = 0;
  places(op, [&](const PlaceAt& place) {
    const bool known = !place.undecided && !place.maybe_taken;
    const bool read = place.taken && memory.inside(place.at);
    t.data[at++] = !known ? Scalar::unknown() : read ? memory.read(place.at) : pad;
  });
  define(op, std::move(t));
}

void Machine::scatter(const Op& op) {
  ParamMemory& memory = memory_[static_cast<size_t>(op.as<PlaceAttr>().view.param)];
  places(op, [&](const PlaceAt& place) {
    if (place.undecided && place.taken) memory.forget();
    if (place.undecided || !place.taken || !memory.inside(place.at)) return;
    memory.write(place.at, place.maybe_taken ? Scalar::unknown() : place.value);
  });
}

void Machine::atomic(const Op& op) {
  const auto& a = op.as<AtomicAttr>();
  ParamMemory& memory = memory_[static_cast<size_t>(a.view.param)];
  const DType t = p_.params[static_cast<size_t>(a.view.param)].dtype;
  // What an element was before depends on the order of instances. Where they begin in order they
  // wait for what they look at.
  const bool ordered =
      !bounded_ || tw::count(launch_.grid) == 1 || is_scratch(a.view.param) || p_.ticket;
  // And so does what it is after.
  const bool takes_turns = a.op == AtomicOp::exch || a.op == AtomicOp::cas;
  Elements before;
  places(op, [&](const PlaceAt& place) {
    if (place.undecided && place.taken) memory.forget();
    const bool done = !place.undecided && place.taken && memory.inside(place.at);
    const bool known = !place.undecided && !place.maybe_taken && (!done || ordered);
    const Scalar old = done ? memory.read(place.at) : from_number(t, Number{!is_float(t), 0, 0});
    before.push_back(known ? old : Scalar::unknown());
    if (!done) return;
    const bool open = place.maybe_taken || (takes_turns && !ordered);
    const Scalar value = open ? Scalar::unknown() : place.value;
    if (bounded_)
      memory.update(a.op, place.at, value, place.expected);
    else
      memory.write(place.at, updated(a.op, t, old, value, place.expected));
  });
  if (!op.out.empty()) define(op, {out_type(op), std::move(before)});
}

Message Machine::message(const Op& op) const {
  const Type& t = p_.type(op.in[0]);
  return {op.at, op.as<MessageAttr>().text, op.code == Opcode::assert_, t.dtype, t.shape};
}

void Machine::check(const Op& op) {
  const Elements& mask = in(op).data;
  if (in_type(op) == i64) {
    if (mask[0].undecided || mask[0].i == kAllTrue) return;
    throw failed_check(message(op), pids_, mask[0].i);
  }
  for (size_t e = 0; e < mask.size(); ++e)
    if (!mask[e].undecided && mask[e].i == 0)
      throw failed_check(message(op), pids_, static_cast<int64_t>(e));
}

void Machine::show(const Op& op) {
  const Elements& data = in(op).data;
  print_lines(options_.print, printed(message(op), pids_, [&](int64_t e) {
                const Scalar& a = data[static_cast<size_t>(e)];
                return a.undecided ? "?" : element_text(in_type(op), a.f, a.i);
              }));
}

void Machine::cast(const Op& op) {
  const auto& how = op.as<CastAttr>();
  const DType from = in_type(op), to = out_type(op).dtype;
  const auto seed = static_cast<uint64_t>(value_of(how.seed));
  uint64_t element = 0;
  define(op, map(out_type(op), in(op), [&](const Scalar& a) {
           const bool stochastic = how.rounding == Rounding::SR;
           const uint32_t random = stochastic ? philox(seed, 0, element++).word[0] : 0;
           return bounded_ ? bounded_cast(from, to, how, random, a)
                           : exact_cast(from, to, how, random, a);
         }));
}

void Machine::bitcast(const Op& op) {
  const DType from = in_type(op), to = out_type(op).dtype;
  define(op, map(out_type(op), in(op), [&](const Scalar& a) {
           return bounded_ ? bounded_bitcast(from, to, a) : exact_bitcast(from, to, a);
         }));
}

void Machine::lookup(const Op& op) {
  const DType t = out_type(op).dtype;
  const std::vector<Number>& table = op.as<TableAttr>().entries;
  const auto entry = [&](const Scalar& index) {
    if (index.undecided) return Scalar::unknown();
    const auto at = static_cast<uint64_t>(index.i);  // a negative one is past the end
    return from_number(t, at < table.size() ? table[at] : Number{!is_float(t), 0, 0});
  };
  define(op, map(out_type(op), in(op), entry));
}

void Machine::random(const Op& op) {
  const auto word = [](const Scalar& counter, const Scalar& seed, const Scalar& stream) {
    if (counter.undecided || seed.undecided || stream.undecided) return Scalar::unknown();
    return Scalar::of_int(philox(static_cast<uint64_t>(seed.i), static_cast<uint64_t>(stream.i),
                                 static_cast<uint64_t>(counter.i))
                              .word[0]);
  };
  define(op, map(out_type(op), in(op, 0), in(op, 1), in(op, 2), word));
}

void Machine::unary(const Op& op) {
  const DType t = in_type(op);
  define(op, map(out_type(op), in(op), [&](const Scalar& a) {
           return bounded_ ? bounded_unary(op.code, t, a) : exact_unary(op.code, t, a);
         }));
}

void Machine::binary(const Op& op) {
  const DType t = in_type(op);
  const bool loose = in_combiner_ || contracts_[op.out[0]];
  // A value compared with itself: whatever it is, it is the same on both sides.
  const bool itself = op.in[0] == op.in[1] && out_type(op).dtype == b1 && is_float(t);
  define(op, map(out_type(op), in(op, 0), in(op, 1), [&](const Scalar& a, const Scalar& b) {
           if (!bounded_ || (itself && !a.undecided)) return exact_binary(op.code, t, a, b);
           return bounded_binary(op.code, t, a, b, loose);
         }));
}

void Machine::where(const Op& op) {
  define(op, map(out_type(op), in(op, 0), in(op, 1), in(op, 2), bounded_where));
}

void Machine::reshape(const Op& op) {
  TileData t = in(op);
  t.type = out_type(op);
  define(op, std::move(t));
}

void Machine::slice(const Op& op) {
  const Extents& start = op.as<SliceAttr>().start;
  TileData t = make_tile(out_type(op));
  size_t at = 0;
  for_each_index(t.type.shape, [&](const Extents& i) {
    Extents source = start;
    for (size_t k = 0; k < i.size(); ++k) source[k] += i[k];
    t.data[at++] = in(op).data[static_cast<size_t>(position(in(op).type.shape, source))];
  });
  define(op, std::move(t));
}

void Machine::for_loop(const Op& op) {
  const auto& a = op.as<LoopAttr>();
  const Region& body = op.regions[0];
  const int64_t hi = value_of(a.hi), step = value_of(a.step);
  assign(body.args, op.in);
  for (int64_t i = value_of(a.lo); i < hi; i += step) {
    counters_[static_cast<size_t>(a.loop)] = i;
    run_region(body);
    assign(body.args, body.yields);
  }
  assign(op.out, body.args);
}

void Machine::while_loop(const Op& op) {
  const Region& body = op.regions[0];
  assign(body.args, op.in);
  while (true) {
    const Scalar go = values_[body.args[0]].data[0];
    if (go.undecided) lose(op);
    if (go.undecided || go.i == 0) break;
    if (++iterations_ > options_.most_iterations)
      throw UserError(op.at,
                      fmt::format("while loops made more than {} iterations together",
                                  options_.most_iterations),
                      "a condition that never becomes false? "
                      "InterpretOptions::most_iterations allows more");
    run_region(body);
    assign(body.args, body.yields);
  }
  assign(op.out, body.args);
}

/// How often the loop runs is open: so is all that it carries or may write.
void Machine::lose(const Op& loop) {
  const Region& body = loop.regions[0];
  for (ValueId v : body.args)
    for (Scalar& element : values_[v].data) element = Scalar::unknown();
  walk(body, [&](const Op& op) {
    if (info(op.code).effect == Effect::write)
      memory_[static_cast<size_t>(view_of(op)->param)].forget();
  });
}

void Machine::branch(const Op& op) {
  const auto& c = op.as<CondAttr>();
  const int64_t a = value_of(c.a), b = value_of(c.b);
  const bool taken = c.kind == CompareKind::lt   ? a < b
                     : c.kind == CompareKind::le ? a <= b
                     : c.kind == CompareKind::eq ? a == b
                                                 : a != b;
  const Region& side = op.regions[taken ? 0 : 1];
  run_region(side);
  assign(op.out, side.yields);
}

void Machine::par(const Op& op) {
  const auto axis = static_cast<size_t>(op.as<AxisAttr>().axis);
  for (pids_[axis] = 0; pids_[axis] < launch_.grid[axis]; ++pids_[axis]) {
    begin_instance();
    run_region(op.regions[0]);
  }
}

int64_t Interpretation::count() const {
  int64_t n = 0;
  for (const auto& tensor : outputs) n += static_cast<int64_t>(tensor.size());
  return n;
}

int64_t Interpretation::undecided() const {
  int64_t n = 0;
  for (const auto& tensor : outputs)
    n += std::count_if(tensor.begin(), tensor.end(), [](const Scalar& s) { return s.undecided; });
  return n;
}

Interpretation interpret(const Program& p, const std::vector<TensorView>& inputs,
                         const std::vector<TensorView>& outputs,
                         const std::vector<std::pair<std::string, int64_t>>& dims,
                         const InterpretOptions& options) {
  const Launch launch = check_launch(p, inputs, outputs, dims);
  Program checked = p;
  if (options.checked)
    check_divisions(checked);
  else
    drop_messages(checked, false);
  Machine machine(checked, launch, options);
  machine.run();
  Interpretation r;
  for (size_t i = 0; i < given(p).size(); ++i)
    if (p.params[i].kind != ParamKind::in) r.outputs.push_back(machine.elements(i));
  return r;
}

}  // namespace tw
