#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "tw/emit/cpu/op_table.h"

namespace tw::cpu {
namespace {

Reg from_bool(Expression& e, const Reg& a, DType to) {
  Prelude& prelude = e.context().prelude;
  const DType reg = register_type(to);
  const std::string type = prelude.type(reg, a.lanes);
  if (a.lanes == 1) return e.define(to, 1, a.loops, fmt::format("({}){}", type, a.text));
  if (a.mask_bytes == bytes(reg) && !is_float(reg)) {
    return e.define(to, a.lanes, a.loops, fmt::format("({})({} & 1)", type, a.text));
  }
  return e.define(to, a.lanes, a.loops,
                  fmt::format("__builtin_convertvector({} & 1, {})", a.text, type));
}

/// Cut to the bits of a packed integer, the sign extended.
Reg wrapped(Expression& e, const Reg& r) {
  if (!is_packed(r.dtype)) return r;
  Prelude& prelude = e.context().prelude;
  const std::string pack = prelude.use(fmt::format("pack_{}", name(r.dtype)), r.dtype, r.lanes);
  const std::string unpack = prelude.use(fmt::format("unpack_{}", name(r.dtype)), r.dtype, r.lanes);
  return e.define(r.dtype, r.lanes, r.loops, fmt::format("{}({}({}))", unpack, pack, r.text));
}

/// The linear number of the element in its tile: the counter of its random word.
Expr element_number(const Extents& shape, const Coords& at) {
  Expr flat = 0;
  for (size_t k = 0; k < shape.size(); ++k) flat = flat * shape[k] + at[k];
  return flat;
}

/// Rounds through f64, lane by lane: every rounding, every float format.
Reg round_any(Expression& e, const Op& op, const Coords& at, const Reg& a, DType to) {
  const CastAttr& how = op.as<CastAttr>();
  Context& c = e.context();
  const DTypeInfo& d = info(to);
  const int smallest = 2 - (1 << (d.exponent_bits - 1));
  // What the formats without zero, infinity or NaN do differently stands in functions around it.
  const char* form = to == e8m0 ? "round_to_power" : is_packed(to) ? "round_to_number" : "round_to";
  const std::string f = c.prelude.use(form, f64, 1);
  std::string random = "0";
  Reg counter;
  if (how.rounding == Rounding::SR) {
    counter = e.index(element_number(c.program.type(op.out[0]).shape, at), i64);
    random = fmt::format("{}({}, 0, {}{})", c.prelude.use("philox", u64, 1), c.text(how.seed),
                         counter.text, counter.lanes > 1 ? "[l]" : "");
  }
  const uint32_t loops = a.loops | counter.loops | e.loops_of(how.seed);
  const int lanes = std::max(a.lanes, counter.lanes);
  const std::string past = is_packed(to)      ? fmt::format("{:a}", largest(to))
                           : has_infinity(to) ? "__builtin_inf()"
                                              : "__builtin_nan(\"\")";
  const bool wide = is_int(a.dtype) && bytes(a.dtype) == 8 && to != f64;
  if (wide) c.prelude.use(is_signed_int(a.dtype) ? "sticky_signed" : "sticky_unsigned", a.dtype, 1);
  const auto one = [&](const std::string& x) {
    return fmt::format("({})({}({}({}), {}, {}, {:a}, {}, {}, {}, {}))",
                       c.prelude.type(register_type(to)), f, wide ? "tw_sticky" : "(f64)", x,
                       d.mantissa_bits, smallest, largest(to), past, static_cast<int>(how.rounding),
                       how.saturate ? "true" : "false", random);
  };
  if (lanes == 1) return e.define(to, 1, loops, one(a.text));
  return e.define_lanes(to, loops, one(a.text + (a.lanes > 1 ? "[l]" : "")));
}

Reg to_float(Expression& e, const Op& op, const Coords& at, const Reg& a, DType to) {
  const CastAttr& how = op.as<CastAttr>();
  const bool widens = is_float(a.dtype) && info(to).mantissa_bits >= info(a.dtype).mantissa_bits &&
                      info(to).exponent_bits >= info(a.dtype).exponent_bits;
  const bool nearest = how.rounding == Rounding::RN && (!how.saturate || is_packed(to));
  if (a.dtype == b1) return to == e8m0 ? e.rounded(from_bool(e, a, to)) : from_bool(e, a, to);
  if (widens && !how.saturate) {
    if (register_type(a.dtype) != register_type(to)) return converted(e, a, to);
    Reg r = a;
    r.dtype = to;
    return r;
  }
  if (nearest && (to == f32 || to == f64)) return converted(e, a, to);
  // Integers up to 16 bits, and floats that live in f32, round once from f32.
  const bool from_f32 = is_float(a.dtype) ? a.dtype != f64 : bytes(a.dtype) <= 2;
  if (!nearest || !from_f32) return round_any(e, op, at, a, to);
  Reg r = is_float(a.dtype) ? a : converted(e, a, f32);
  r.dtype = to;
  return e.rounded(r);
}

Reg to_int(Expression& e, const Reg& a, DType to) {
  if (a.dtype == b1) return wrapped(e, from_bool(e, a, to));
  if (!is_float(a.dtype)) return wrapped(e, converted(e, a, to));
  const DType from = register_type(a.dtype);
  const bool lanes_of_i32 = a.lanes > 1 && from == f32 && to == i32;
  const std::string f = e.context().prelude.use(
      lanes_of_i32 ? "to_i32_lanes" : fmt::format("to_{}", name(to)), from, a.lanes);
  e.context().prelude.type(register_type(to), a.lanes);
  return e.define(to, a.lanes, a.loops,
                  fmt::format("{}({})", lanes_of_i32 ? "tw_to_i32" : f, a.text));
}

}  // namespace

Reg converted(Expression& e, const Reg& a, DType to) {
  if (a.lanes > 1 && bytes(a.dtype) == 1 && is_int(a.dtype) && (is_float(to) || to == i32)) {
    const std::string f = e.context().prelude.use("extend", register_type(a.dtype), a.lanes);
    const Reg wide = e.define(i32, a.lanes, a.loops, fmt::format("{}({})", f, a.text));
    return to == i32 ? wide : converted(e, wide, to);
  }
  const std::string type = e.context().prelude.type(register_type(to), a.lanes);
  const char* form = a.lanes == 1 ? "({1}){0}" : "__builtin_convertvector({0}, {1})";
  return e.define(to, a.lanes, a.loops, fmt::format(fmt::runtime(form), a.text, type));
}

Reg cast_element(Expression& e, const Op& op, const Coords& at) {
  if (const std::optional<Reg> r = look_up(e, op.out[0], at)) return *r;
  const Reg a = e.value(op.in[0], at);
  const DType to = e.context().program.type(op.out[0]).dtype;
  if (a.dtype == to) return a;
  if (to == b1) {
    return e.combine(is_float(a.dtype) ? "$0 != 0.0f" : "$0 != 0", b1, {a});
  }
  return is_float(to) ? to_float(e, op, at, a, to) : to_int(e, a, to);
}

}  // namespace tw::cpu
