#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/ir/impl/rules.h"
#include "tw/ir/infer.h"

namespace tw {
namespace {

[[noreturn]] void fail(const Op& op, std::string what) {
  throw Violation{op.at, fmt::format("'{}': {}", info(op.code).name, what)};
}

std::vector<Type> types(const Program& p, const std::vector<ValueId>& ids) {
  std::vector<Type> t;
  for (ValueId v : ids) t.push_back(p.type(v));
  return t;
}

void check_number(const Op& op, const Number& n, DType t) {
  if (n.integral == is_float(t))
    fail(op,
         fmt::format("a constant of {} must be {}", name(t), is_float(t) ? "a float" : "integral"));
  if (is_float(t) || t == i64 || t == u64) return;
  const auto lo = t == b1 ? int64_t{0} : static_cast<int64_t>(lowest(t));
  const auto hi = t == b1 ? int64_t{1} : static_cast<int64_t>(largest(t));
  if (n.i < lo || n.i > hi) fail(op, fmt::format("{} does not fit {}", n.i, name(t)));
}

// Returns the parameter.
const Param& check_view_of(const Program& p, const Op& op) {
  const View& v = *view_of(op);
  if (v.param < 0 || static_cast<size_t>(v.param) >= p.params.size())
    fail(op, fmt::format("parameter {} does not exist", v.param));
  const Param& param = p.params[static_cast<size_t>(v.param)];
  if (v.origin.size() != param.dims.size())
    fail(op, fmt::format("the view has {} coordinates, '{}' has {} axes", v.origin.size(),
                         param.name, param.dims.size()));
  for (size_t k = 0; k < v.axes.size(); ++k)
    if (v.axes[k] < 0 || static_cast<size_t>(v.axes[k]) >= param.dims.size() ||
        (k > 0 && v.axes[k] <= v.axes[k - 1]))
      fail(op, fmt::format("the axes of a view of '{}' must ascend and exist", param.name));
  if (info(op.code).effect == Effect::write && param.kind == ParamKind::in)
    fail(op, fmt::format("'{}' is read only", param.name));
  return param;
}

void check_view(const Program& p, const Op& op, const Type& tile) {
  const auto& a = op.as<ViewAttr>();
  const View& v = a.view;
  const Param& param = check_view_of(p, op);
  if (tile.dtype != param.dtype || tile.shape.size() != v.axes.size())
    fail(op, fmt::format("{} does not fit a view of '{}', {} of {} axes", to_string(tile),
                         param.name, name(param.dtype), v.axes.size()));
  if (op.code == Opcode::store) {
    if (!(a.pad == Number{})) fail(op, "a store has no pad");
  } else {
    check_number(op, a.pad, param.dtype);
  }
}

void check_place_pad(const Op& op, DType t) {
  const auto* place = std::get_if<PlaceAttr>(&op.attr);
  if (op.code == Opcode::gather) check_number(op, place->pad, t);
  if (op.code == Opcode::scatter && !(place->pad == Number{})) fail(op, "a scatter has no pad");
}

// A gather, scatter or atomic.
void check_place(const Program& p, const Op& op) {
  const Param& param = check_view_of(p, op);
  const View& v = *view_of(op);
  for (const int axis : v.axes)
    if (!(v.origin[static_cast<size_t>(axis)] == Expr(0)))
      fail(op, fmt::format("axis {} of '{}' has an origin and a coordinate", axis, param.name));
  const auto* atomic = std::get_if<AtomicAttr>(&op.attr);
  const bool masked = atomic ? atomic->masked : op.as<PlaceAttr>().masked;
  const size_t values = op.code == Opcode::gather               ? 0
                        : atomic && atomic->op == AtomicOp::cas ? 2
                                                                : 1;
  const size_t want = v.axes.size() + values + (masked ? 1 : 0);
  if (op.in.size() != want) fail(op, fmt::format("{} operands, not {}", op.in.size(), want));
  const PlaceOperands in = place_operands(op);
  const Extents shape = place_extents(p, op);
  for (const auto& x : {in.value, in.expected})
    if (x && p.type(*x).dtype != param.dtype)
      fail(op, fmt::format("{} does not fit '{}'", to_string(p.type(*x)), param.name));
  if (atomic) check_atomic(atomic->op, param.dtype, op.at);
  if (op.code == Opcode::scatter) check_scatter(param, op.at);
  check_place_pad(op, param.dtype);
  if (op.out.size() > 1) fail(op, fmt::format("{} results", op.out.size()));
  if (!op.out.empty() && !(p.type(op.out[0]) == Type{param.dtype, shape}))
    fail(op, fmt::format("its type is {}, the operands give {}", to_string(p.type(op.out[0])),
                         to_string(Type{param.dtype, shape})));
}

void check_carried(const Program& p, const Op& op) {
  const Region& body = op.regions[0];
  const std::vector<Type> want = types(p, op.in);
  if (types(p, op.out) != want || types(p, body.args) != want || types(p, body.yields) != want)
    fail(op, "first values, arguments, yields and results must have equal types");
}

void check_for(const Program& p, const Facts& facts, const Op& op) {
  check_carried(p, op);
  if (bounds(op.as<LoopAttr>().step, facts).lo < 1)
    fail(op, "the step is not proved to be at least 1");
}

void check_while(const Program& p, const Op& op) {
  check_carried(p, op);
  if (op.in.empty() || !(p.type(op.in[0]) == Type{b1, {}}))
    fail(op, "its first carried value must be a b1[], the condition");
}

void check_if(const Program& p, const Op& op) {
  const std::vector<Type> want = types(p, op.out);
  for (const Region& side : op.regions) {
    if (!side.args.empty()) fail(op, "a side of a branch takes no arguments");
    if (types(p, side.yields) != want) fail(op, "both sides must yield the types of the results");
  }
}

void check_par(const Program& p, const Op& op) {
  const Region& r = op.regions[0];
  if (!r.args.empty() || !r.yields.empty()) fail(op, "its region takes and yields nothing");
  const int axis = op.as<AxisAttr>().axis;
  if (axis < 0 || static_cast<size_t>(axis) >= p.grid.size())
    fail(op, fmt::format("axis {} of a grid of {} axes", axis, p.grid.size()));
}

void check_contract(const Program& p, const Op& op) {
  const Region& a = op.regions[0];
  const Region& b = op.regions[1];
  const Region& sum = op.regions[2];
  if (!a.args.empty() || !b.args.empty() || a.yields.size() != 1 || b.yields.size() != 1)
    fail(op, "the regions of A and B take nothing and yield one tile");
  if (sum.args.size() != 1 || !sum.yields.empty())
    fail(op, "the last region takes the sum and yields nothing");
  infer_dot(p.type(a.yields[0]), p.type(b.yields[0]), p.type(sum.args[0]),
            op.as<ContractAttr>().precision, op.at);
}

void check_fold(const Program& p, const Op& op) {
  const ReduceAttr& a = fold_of(op);
  if (op.in.empty() || op.in.size() != op.out.size())
    fail(op, fmt::format("{} operands and {} results", op.in.size(), op.out.size()));
  if (a.combiner != Combiner::custom && op.in.size() != 1)
    fail(op, "only a custom combiner folds several tiles");
  std::vector<Type> elements;
  for (size_t k = 0; k < op.in.size(); ++k) {
    const Type& t = p.type(op.in[k]);
    if (t.shape != p.type(op.in[0]).shape) fail(op, "tiles of different shapes");
    if (!(p.type(op.out[k]) == infer_fold(op, t)))
      fail(op, fmt::format("result {} has type {}", k, to_string(p.type(op.out[k]))));
    elements.push_back({t.dtype, {}});
  }
  if (a.combiner != Combiner::custom) return;
  const Region& r = op.regions[0];
  if (types(p, r.yields) != elements) fail(op, "the combiner must yield one value per tile");
  elements.insert(elements.end(), elements.begin(), elements.end());
  if (types(p, r.args) != elements)
    fail(op, "the combiner takes the left, then the right elements");
  for (const Op& inner : r.ops)
    if (!is_elementwise(inner.code) || !p.type(inner.out[0]).shape.empty())
      fail(op, fmt::format("'{}' cannot stand in a combiner, which works on single elements",
                           info(inner.code).name));
}

void check_top_k(const Program& p, const Op& op) {
  if (infer_top_k(types(p, op.in), op.as<TopKAttr>().k, op.at) != types(p, op.out))
    fail(op, "results of another type than the k first of its operands");
}

void check_cast(const Program& p, const Op& op) {
  const auto& a = op.as<CastAttr>();
  const DType from = p.type(op.in[0]).dtype, to = p.type(op.out[0]).dtype;
  check_cast(from, to, a, op.at);
  if (a.rounding != Rounding::SR && !(a.seed == Expr(0))) fail(op, "only SR takes a seed");
}

void check_iota(const Program& p, const Op& op) {
  const Type& t = p.type(op.out[0]);
  const int axis = op.as<AxisAttr>().axis;
  if (!is_int(t.dtype) || is_packed(t.dtype))
    fail(op, fmt::format("gives integers of whole bytes, not {}", to_string(t)));
  if (axis < 0 || static_cast<size_t>(axis) >= t.shape.size())
    fail(op, fmt::format("axis {} of {}", axis, to_string(t)));
}

void check_index(const Program& p, const Op& op) {
  const Type& t = p.type(op.out[0]);
  if (!is_int(t.dtype) || is_packed(t.dtype) || count(t.shape) != 1)
    fail(op, fmt::format("gives one integer, not {}", to_string(t)));
}

// The type that the operands of an op with one result give it.
// budget: table, one case an op
Type expected(const Program& p, const Op& op) {
  auto in = [&](size_t k) -> const Type& { return p.type(op.in[k]); };
  const Type& out = p.type(op.out[0]);
  switch (op.code) {
    case Opcode::full:
    case Opcode::iota:
    case Opcode::index:
    case Opcode::load:
    case Opcode::store:
    case Opcode::gather:
    case Opcode::scatter:
    case Opcode::atomic:
    case Opcode::assert_:
    case Opcode::print:
    case Opcode::reduce:
    case Opcode::scan:
    case Opcode::top_k:
    case Opcode::for_:
    case Opcode::while_:
    case Opcode::if_:
    case Opcode::par:
    case Opcode::contract:
      return out;
    case Opcode::keep:
      return in(0);
    case Opcode::cast:
      return infer_cast(in(0), out.dtype, op.at);
    case Opcode::bitcast:
      return infer_bitcast(in(0), out.dtype, op.at);
    case Opcode::lookup:
      return infer_lookup(in(0), out.dtype, op.as<TableAttr>().entries.size(), op.at);
    case Opcode::philox:
      return infer_philox(in(0), in(1), in(2), op.at);
    case Opcode::reshape:
      return infer_reshape(in(0), out.shape, op.at);
    case Opcode::transpose:
      return infer_transpose(in(0), op.as<PermAttr>().perm, op.at);
    case Opcode::slice:
      return infer_slice(in(0), op.as<SliceAttr>().start, out.shape, op.at);
    case Opcode::broadcast:
      return infer_broadcast(in(0), out.shape, op.at);
    case Opcode::where:
      return infer_where(in(0), in(1), in(2), op.at);
    case Opcode::dot:
      return infer_dot(in(0), in(1), in(2), op.as<DotAttr>().precision, op.at);
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
      return infer_unary(op.code, in(0), op.at);
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
      return infer_binary(op.code, in(0), in(1), op.at);
  }
  return out;
}

}  // namespace

void check_op(const Program& p, const Facts& facts, const Op& op) {
  if (op.code == Opcode::for_) return check_for(p, facts, op);
  if (op.code == Opcode::while_) return check_while(p, op);
  if (op.code == Opcode::if_) return check_if(p, op);
  if (op.code == Opcode::par) return check_par(p, op);
  if (op.code == Opcode::contract) return check_contract(p, op);
  if (is_fold(op.code)) return check_fold(p, op);
  if (op.code == Opcode::assert_) {
    const Type& t = p.type(op.in[0]);
    const bool lowered = t.dtype == i64 && count(t.shape) == 1;
    return lowered ? void() : check_assert(t, op.at);
  }
  if (op.code == Opcode::print) return;
  if (op.code == Opcode::top_k) return check_top_k(p, op);
  if (op.code == Opcode::store) return check_view(p, op, p.type(op.in[0]));
  if (op.code == Opcode::gather || op.code == Opcode::scatter || op.code == Opcode::atomic)
    return check_place(p, op);
  const Type& out = p.type(op.out[0]);
  if (op.code == Opcode::load) check_view(p, op, out);
  if (op.code == Opcode::full) check_number(op, op.as<FullAttr>().value, out.dtype);
  if (op.code == Opcode::lookup)
    for (const Number& n : op.as<TableAttr>().entries) check_number(op, n, out.dtype);
  if (op.code == Opcode::cast) check_cast(p, op);
  if (op.code == Opcode::iota) check_iota(p, op);
  if (op.code == Opcode::index) check_index(p, op);
  if (const Type want = expected(p, op); !(out == want))
    fail(op, fmt::format("its type is {}, the operands give {}", to_string(out), to_string(want)));
}

}  // namespace tw
