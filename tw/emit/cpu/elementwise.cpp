#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/emit/cpu/op_table.h"
#include "tw/emit/cpu/places.h"

namespace tw::cpu {
namespace {

const Type& type_of(Expression& e, ValueId v) { return e.context().program.type(v); }

Reg operand(Expression& e, const Op& op, int k, const Coords& at) { return e.value(op.in[k], at); }

Reg full(Expression& e, const Op& op, const Coords&) {
  return e.literal(type_of(e, op.out[0]).dtype, op.as<FullAttr>().value);
}

Reg iota(Expression& e, const Op& op, const Coords& at) {
  return e.rounded(e.index(at[op.as<AxisAttr>().axis], type_of(e, op.out[0]).dtype));
}

Reg index(Expression& e, const Op& op, const Coords&) {
  return e.index(op.as<IndexAttr>().value, type_of(e, op.out[0]).dtype);
}

Reg load(Expression& e, const Op& op, const Coords& at) {
  const ViewAttr& a = op.as<ViewAttr>();
  Coords tensor(a.view.origin.begin(), a.view.origin.end());
  for (size_t k = 0; k < a.view.axes.size(); ++k) {
    Expr& axis = tensor[a.view.axes[k]];
    axis = simplify(axis + at[k], e.context().facts);
  }
  return e.load(a.view.param, tensor, a.pad);
}

Reg gather(Expression& e, const Op& op, const Coords& at) {
  const Number& pad = op.as<PlaceAttr>().pad;
  const Reg outside = e.literal(type_of(e, op.out[0]).dtype, pad);
  std::optional<Reg> mask;
  if (const auto v = place_operands(op).mask) mask = e.value(*v, at);
  if (mask && mask->text == "false") return outside;
  const Places places = places_of(e, op, at);
  const Reg r = load_places(e, places, pad);
  return !mask || mask->text == "true" ? r : select(e, *mask, r, outside);
}

Reg bitcast(Expression& e, const Op& op, const Coords& at) {
  const Reg a = operand(e, op, 0, at);
  const DType from = a.dtype, to = type_of(e, op.out[0]).dtype;
  if (from == to) return a;
  Prelude& prelude = e.context().prelude;
  const bool packed = register_type(from) != from || from == b1;
  const DType bits = unsigned_of_bytes(bytes(to));
  Reg r = a;
  if (packed) {
    const std::string f = prelude.use(fmt::format("pack_{}", name(from)), from, a.lanes);
    r = e.define(bits, a.lanes, a.loops, fmt::format("{}({})", f, a.text));
  }
  if (register_type(to) != to || to == b1) {
    if (!packed) {
      r = e.define(bits, a.lanes, a.loops,
                   fmt::format("({}){}", prelude.type(bits, a.lanes), r.text));
    }
    const std::string f = prelude.use(fmt::format("unpack_{}", name(to)), to, a.lanes);
    return e.define(to, a.lanes, a.loops, fmt::format("{}({})", f, r.text), 4);
  }
  const std::string type = prelude.type(to, a.lanes);
  return e.define(to, a.lanes, a.loops,
                  a.lanes > 1 ? fmt::format("({}){}", type, r.text)
                              : fmt::format("__builtin_bit_cast({}, {})", type, r.text));
}

/// One key for all lanes is usual; keys that differ go lane by lane.
Reg philox(Expression& e, const Op& op, const Coords& at) {
  Prelude& prelude = e.context().prelude;
  const Reg counter = operand(e, op, 0, at);
  const Reg seed = operand(e, op, 1, at);
  const Reg stream = operand(e, op, 2, at);
  const uint32_t loops = counter.loops | seed.loops | stream.loops;
  const int lanes = std::max({counter.lanes, seed.lanes, stream.lanes});
  const bool by_lane = lanes > 1 && (seed.lanes > 1 || stream.lanes > 1 || counter.lanes == 1);
  const std::string f = prelude.use("philox", u64, by_lane ? 1 : lanes);
  const auto lane = [&](const Reg& r) { return r.text + (r.lanes > 1 ? "[l]" : ""); };
  if (by_lane) {
    return e.define_lanes(
        u32, loops,
        fmt::format("{}((u64){}, (u64){}, (u64){})", f, lane(seed), lane(stream), lane(counter)));
  }
  prelude.type(u32, lanes);
  return e.define(u32, lanes, loops,
                  fmt::format("{}((u64){}, (u64){}, ({}){})", f, seed.text, stream.text,
                              prelude.type(u64, lanes), counter.text));
}

Reg neg(Expression& e, const Op& op, const Coords& at) {
  const Reg a = operand(e, op, 0, at);
  if (is_float(a.dtype)) return e.combine("-($0)", a.dtype, {a});
  return e.call("negative", a.dtype, {a});
}

Reg abs(Expression& e, const Op& op, const Coords& at) {
  const Reg a = operand(e, op, 0, at);
  if (is_float(a.dtype)) return e.call("fabs", a.dtype, {a});
  if (is_signed_int(a.dtype)) return e.call("magnitude", a.dtype, {a});
  return a;
}

Reg not_(Expression& e, const Op& op, const Coords& at) {
  const Reg a = operand(e, op, 0, at);
  if (a.text == "true" || a.text == "false") {
    return e.literal(b1, Number{true, a.text == "false", 0});
  }
  if (a.dtype == b1 && a.lanes == 1) return e.combine("!$0", b1, {a});
  const std::string type =
      e.context().prelude.type(a.dtype == b1 ? signed_of_bytes(a.mask_bytes) : a.dtype, a.lanes);
  return e.combine(fmt::format("({})~$0", type), a.dtype, {a});
}

/// Functions of one operand: names in the prelude; f64 has its own where `by_width`.
template <Opcode code>
Reg function(Expression& e, const Op& op, const Coords& at) {
  const Reg a = operand(e, op, 0, at);
  const bool rounds_itself = code == Opcode::floor || code == Opcode::ceil || code == Opcode::round;
  std::string name = info(code).name;
  if (a.dtype == f64 && !rounds_itself) name += "_f64";
  return e.rounded(e.call(name, a.dtype, {a}));
}

Reg rsqrt(Expression& e, const Op& op, const Coords& at) {
  const Reg a = operand(e, op, 0, at);
  const bool wide = a.dtype == f64;
  Reg root = a;
  root.dtype = register_type(a.dtype);
  root = e.call(wide ? "sqrt_f64" : "sqrt", root.dtype, {root});
  return e.rounded(e.combine(wide ? "1.0 / $0" : "1.0f / $0", a.dtype, {root}));
}

/// By a constant, bytes too shift in one or two instructions; by a variable, lane by lane.
template <Opcode code>
Reg shift(Expression& e, const Op& op, const Coords& at) {
  const Reg a = operand(e, op, 0, at), b = operand(e, op, 1, at);
  const std::optional<Number> n = constant_of(e.context(), op.in[1]);
  const bool whole = n && n->as_double() >= 0 && n->as_double() < 8.0 * bytes(a.dtype);
  if (!whole || a.lanes == 1 || (code == Opcode::shl && is_signed_int(a.dtype))) {
    return combine_pair(e, code, a, b);
  }
  return e.combine(code == Opcode::shl ? "$0 << $1" : "$0 >> $1", a.dtype, {a, b});
}

/// a op b for floats by the operator, for integers by a function that wraps.
template <Opcode code>
Reg arithmetic(Expression& e, const Op& op, const Coords& at) {
  if (const std::optional<Reg> r = look_up(e, op.out[0], at)) return *r;
  const Reg a = operand(e, op, 0, at), b = operand(e, op, 1, at);  // in this order, by any compiler
  return combine_pair(e, code, a, b);
}

/// y where v is 1 + f(y) in f32.
std::optional<ValueId> one_plus(const Context& c, ValueId v, Opcode f) {
  const Op* sum = c.def[v];
  if (sum == nullptr || sum->code != Opcode::add || c.program.type(v).dtype != f32)
    return std::nullopt;
  for (const size_t k : {0, 1}) {
    const std::optional<Number> one = constant_of(c, sum->in[k]);
    const Op* of = c.def[sum->in[1 - k]];
    if (one && one->as_double() == 1 && of != nullptr && of->code == f) return of->in[0];
  }
  return std::nullopt;
}

/// Threads of GPUs do not branch for the quotients of sigmoid and silu.
Reg divide(Expression& e, const Op& op, const Coords& at) {
  const auto y = one_plus(e.context(), op.in[1], Opcode::exp);
  if (!e.context().prelude.for_thread() || !y) return arithmetic<Opcode::div>(e, op, at);
  if (const std::optional<Reg> r = look_up(e, op.out[0], at)) return *r;
  const Reg a = operand(e, op, 0, at), b = e.value(*y, at);
  const bool few = e.context().few_digits.contains(op.out[0]);
  return e.call(few ? "over_one_plus_exp_bf16" : "over_one_plus_exp", f32, {a, b});
}

/// 1 + erf y and 1 + tanh y of few digits are short, and keep them where they are near 0.
Reg add(Expression& e, const Op& op, const Coords& at) {
  if (e.context().few_digits.contains(op.out[0])) {
    for (const auto& [code, function] : {std::pair{Opcode::erf_fast, "one_plus_erf_bf16"},
                                         {Opcode::tanh_fast, "one_plus_tanh_bf16"}}) {
      const auto y = one_plus(e.context(), op.out[0], code);
      if (!y) continue;
      if (const std::optional<Reg> r = look_up(e, op.out[0], at)) return *r;
      return e.call(function, f32, {e.value(*y, at)});
    }
  }
  return arithmetic<Opcode::add>(e, op, at);
}

template <Opcode code>
Reg compare(Expression& e, const Op& op, const Coords& at) {
  const DType t = type_of(e, op.in[0]).dtype;
  if (is_int(t)) {
    const std::optional<Expr> a = as_index(e, op.in[0], at), b = as_index(e, op.in[1], at);
    if (a && b) {
      if (code == Opcode::lt) return e.positive(simplify(*b - *a, e.context().facts));
      if (code == Opcode::le) return e.positive(simplify(*b - *a + 1, e.context().facts));
    }
  }
  Reg a = operand(e, op, 0, at), b = operand(e, op, 1, at);
  const char* sign = code == Opcode::eq   ? "=="
                     : code == Opcode::ne ? "!="
                     : code == Opcode::lt ? "<"
                                          : "<=";
  if (t == b1 && std::max(a.lanes, b.lanes) > 1) {
    const int wide = std::max(a.mask_bytes, b.mask_bytes);
    a = e.mask_of(a, wide);
    b = e.mask_of(b, wide);
    // Lanes are 0 and -1, so "less" is the reverse.
    if (code == Opcode::lt) return e.combine("$0 > $1", b1, {a, b});
    if (code == Opcode::le) return e.combine("$0 >= $1", b1, {a, b});
  }
  return e.combine(fmt::format("$0 {} $1", sign), b1, {a, b});
}

Reg where(Expression& e, const Op& op, const Coords& at) {
  const Reg mask = operand(e, op, 0, at);
  if (mask.text == "true") return operand(e, op, 1, at);
  if (mask.text == "false") return operand(e, op, 2, at);
  const Reg a = operand(e, op, 1, at), b = operand(e, op, 2, at);
  return select(e, mask, a, b);
}

Reg moved(Expression& e, const Op& op, const Coords& at) {
  return e.value(op.in[0], source_of(e.context(), op, at));
}

}  // namespace

Reg select(Expression& e, const Reg& mask, Reg a, Reg b) {
  const int lanes = std::max({mask.lanes, a.lanes, b.lanes});
  const DType t = a.dtype;
  if (mask.lanes == 1 && lanes > 1) {
    a = e.widen(a);
    b = e.widen(b);
    if (t == b1) b = e.mask_of(b, a.mask_bytes);
    return e.define(t, lanes, mask.loops | a.loops | b.loops,
                    fmt::format("{} ? {} : {}", mask.text, a.text, b.text), a.mask_bytes);
  }
  if (lanes == 1) return e.combine("$0 ? $1 : $2", t, {mask, a, b});
  const int wide = t == b1 ? std::max({mask.mask_bytes, a.mask_bytes, b.mask_bytes})
                           : static_cast<int>(bytes(register_type(t)));
  const Reg m = e.mask_of(mask, wide);
  if (t == b1) {
    a = e.mask_of(a, wide);
    b = e.mask_of(b, wide);
  }
  return e.combine("$0 ? $1 : $2", t, {m, a, b});
}

namespace {

/// How two elements combine: a pattern, or the name of a function, per class of types; null where
/// the ir has no such op. `mask` is for lanes of b1, `flag` for one.
struct PairRule {
  Opcode code;
  const char *real, *signed_int, *unsigned_int, *mask, *flag;
};

const PairRule kPairs[] = {
    {Opcode::add, "$0 + $1", "add", "add", nullptr, nullptr},
    {Opcode::sub, "$0 - $1", "sub", "sub", nullptr, nullptr},
    {Opcode::mul, "$0 * $1", "mul", "mul", nullptr, nullptr},
    {Opcode::div, "$0 / $1", "div_signed", "div_unsigned", nullptr, nullptr},
    {Opcode::rem, nullptr, "rem_signed", "rem_unsigned", nullptr, nullptr},
    {Opcode::min, "min", "lesser", "lesser", "$0 & $1", "$0 && $1"},
    {Opcode::max, "max", "greater", "greater", "$0 | $1", "$0 || $1"},
    {Opcode::min_num, "min_num", "lesser", "lesser", "$0 & $1", "$0 && $1"},
    {Opcode::max_num, "max_num", "greater", "greater", "$0 | $1", "$0 || $1"},
    {Opcode::and_, nullptr, "$0 & $1", "$0 & $1", "$0 & $1", "$0 && $1"},
    {Opcode::or_, nullptr, "$0 | $1", "$0 | $1", "$0 | $1", "$0 || $1"},
    {Opcode::xor_, nullptr, "$0 ^ $1", "$0 ^ $1", "$0 ^ $1", "$0 != $1"},
    {Opcode::shl, nullptr, "shl", "shl", nullptr, nullptr},
    {Opcode::shr, nullptr, "shr_signed", "shr_unsigned", nullptr, nullptr},
};

const std::pair<Opcode, EmitElement> kExpressions[] = {
    {Opcode::full, full},
    {Opcode::iota, iota},
    {Opcode::index, index},
    {Opcode::load, load},
    {Opcode::gather, gather},
    {Opcode::cast, cast_element},
    {Opcode::lookup, lookup_element},
    {Opcode::bitcast, bitcast},
    {Opcode::philox, philox},
    {Opcode::neg, neg},
    {Opcode::abs, abs},
    {Opcode::not_, not_},
    {Opcode::sqrt, function<Opcode::sqrt>},
    {Opcode::rsqrt, rsqrt},
    {Opcode::exp, function<Opcode::exp>},
    {Opcode::exp2, function<Opcode::exp2>},
    {Opcode::log, function<Opcode::log>},
    {Opcode::sin, function<Opcode::sin>},
    {Opcode::cos, function<Opcode::cos>},
    {Opcode::tanh, function<Opcode::tanh>},
    {Opcode::erf, function<Opcode::erf>},
    {Opcode::tanh_fast, function<Opcode::tanh_fast>},
    {Opcode::erf_fast, function<Opcode::erf_fast>},
    {Opcode::floor, function<Opcode::floor>},
    {Opcode::ceil, function<Opcode::ceil>},
    {Opcode::round, function<Opcode::round>},
    {Opcode::add, add},
    {Opcode::sub, arithmetic<Opcode::sub>},
    {Opcode::mul, arithmetic<Opcode::mul>},
    {Opcode::div, divide},
    {Opcode::rem, arithmetic<Opcode::rem>},
    {Opcode::min, arithmetic<Opcode::min>},
    {Opcode::max, arithmetic<Opcode::max>},
    {Opcode::min_num, arithmetic<Opcode::min_num>},
    {Opcode::max_num, arithmetic<Opcode::max_num>},
    {Opcode::and_, arithmetic<Opcode::and_>},
    {Opcode::or_, arithmetic<Opcode::or_>},
    {Opcode::xor_, arithmetic<Opcode::xor_>},
    {Opcode::shl, shift<Opcode::shl>},
    {Opcode::shr, shift<Opcode::shr>},
    {Opcode::eq, compare<Opcode::eq>},
    {Opcode::ne, compare<Opcode::ne>},
    {Opcode::lt, compare<Opcode::lt>},
    {Opcode::le, compare<Opcode::le>},
    {Opcode::where, where},
    {Opcode::reshape, moved},
    {Opcode::transpose, moved},
    {Opcode::slice, moved},
    {Opcode::broadcast, moved},
    {Opcode::reduce, reduce_element},
    {Opcode::keep, moved},  // one that its only nest computes on the way
};

}  // namespace

Reg combine_pair(Expression& e, Opcode code, Reg a, Reg b) {
  const DType t = a.dtype;
  const bool lanes = std::max(a.lanes, b.lanes) > 1;
  if (t == b1 && lanes) {
    const int wide = std::max(a.mask_bytes, b.mask_bytes);
    a = e.mask_of(a, wide);
    b = e.mask_of(b, wide);
  }
  for (const PairRule& r : kPairs) {
    if (r.code != code) continue;
    const char* how = t == b1            ? (lanes ? r.mask : r.flag)
                      : is_float(t)      ? r.real
                      : is_signed_int(t) ? r.signed_int
                                         : r.unsigned_int;
    if (!how) break;
    const Reg x = how[0] == '$' ? e.combine(how, t, {a, b}) : e.call(how, t, {a, b});
    const bool exact = !is_float(t) || how[0] != '$';
    return exact ? x : e.rounded(x);
  }
  throw InternalError(
      fmt::format("'{}' does not combine two elements of {}", info(code).name, name(t)));
}

bool is_expression(const Program& p, const Op& op) {
  if (op.code == Opcode::reduce) return is_short_reduction(p, op);
  return op.code != Opcode::keep &&
         std::any_of(std::begin(kExpressions), std::end(kExpressions),
                     [&](const auto& entry) { return entry.first == op.code; });
}

EmitElement expression_of(const Op& op) {
  for (const auto& [code, emit] : kExpressions) {
    if (code == op.code) return emit;
  }
  throw InternalError(fmt::format("'{}' is not an expression of elements", info(op.code).name));
}

}  // namespace tw::cpu
