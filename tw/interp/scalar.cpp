#include "tw/interp/scalar.h"

#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "tw/base/error.h"
#include "tw/num/codec.h"

namespace tw {

namespace {

int bits_of(DType t) { return t == b1 ? 1 : static_cast<int>(bits(t)); }

uint64_t as_unsigned(int64_t v) { return static_cast<uint64_t>(v); }
int64_t as_signed(uint64_t v) { return static_cast<int64_t>(v); }

[[noreturn]] void no_such(Opcode code, DType t) {
  throw InternalError(fmt::format("the interpreter has no '{}' on {}", info(code).name, name(t)));
}

/// -0 < +0 and everything else as usual; neither is NaN.
template <class F>
bool below(F a, F b) {
  return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}

template <class F>
F extremum(bool want_max, bool numbers_win, F a, F b) {
  if (std::isnan(a) || std::isnan(b)) {
    if (!numbers_win) return std::isnan(a) ? a : b;
    return std::isnan(a) ? b : a;
  }
  return below(a, b) == want_max ? b : a;
}

template <class F>
F float_binary(Opcode code, DType t, F a, F b) {
  if (code == Opcode::add) return a + b;
  if (code == Opcode::sub) return a - b;
  if (code == Opcode::mul) return a * b;
  if (code == Opcode::div) return a / b;
  if (code == Opcode::min) return extremum(false, false, a, b);
  if (code == Opcode::max) return extremum(true, false, a, b);
  if (code == Opcode::min_num) return extremum(false, true, a, b);
  if (code == Opcode::max_num) return extremum(true, true, a, b);
  no_such(code, t);
}

int64_t int_div(DType t, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (!is_signed_int(t)) return as_signed(as_unsigned(a) / as_unsigned(b));
  return b == -1 ? as_signed(0 - as_unsigned(a)) : a / b;
}

int64_t int_rem(DType t, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (!is_signed_int(t)) return as_signed(as_unsigned(a) % as_unsigned(b));
  return b == -1 ? 0 : a % b;
}

int64_t shift_left(DType t, int64_t a, int64_t b) {
  const bool inside = as_unsigned(b) < static_cast<uint64_t>(bits_of(t));
  return inside ? as_signed(as_unsigned(a) << b) : 0;
}

int64_t shift_right(DType t, int64_t a, int64_t b) {
  const bool inside = as_unsigned(b) < static_cast<uint64_t>(bits_of(t));
  if (!is_signed_int(t)) return inside ? as_signed(as_unsigned(a) >> b) : 0;
  return inside ? a >> b : (a < 0 ? -1 : 0);
}

bool int_less(DType t, int64_t a, int64_t b) {
  return is_signed_int(t) ? a < b : as_unsigned(a) < as_unsigned(b);
}

int64_t int_binary(Opcode code, DType t, int64_t a, int64_t b) {
  const uint64_t x = as_unsigned(a), y = as_unsigned(b);
  if (code == Opcode::add) return as_signed(x + y);
  if (code == Opcode::sub) return as_signed(x - y);
  if (code == Opcode::mul) return as_signed(x * y);
  if (code == Opcode::div) return int_div(t, a, b);
  if (code == Opcode::rem) return int_rem(t, a, b);
  if (code == Opcode::min || code == Opcode::min_num) return int_less(t, b, a) ? b : a;
  if (code == Opcode::max || code == Opcode::max_num) return int_less(t, a, b) ? b : a;
  if (code == Opcode::and_) return a & b;
  if (code == Opcode::or_) return a | b;
  if (code == Opcode::xor_) return a ^ b;
  if (code == Opcode::shl) return shift_left(t, a, b);
  if (code == Opcode::shr) return shift_right(t, a, b);
  no_such(code, t);
}

std::optional<bool> compare(Opcode code, DType t, const Scalar& a, const Scalar& b) {
  const bool fl = is_float(t);
  const bool equal = fl ? a.f == b.f : a.i == b.i;
  const bool less = fl ? a.f < b.f : int_less(t, a.i, b.i);
  if (code == Opcode::eq) return equal;
  if (code == Opcode::ne) return !equal;
  if (code == Opcode::lt) return less;
  if (code == Opcode::le) return less || equal;
  return std::nullopt;
}

double float_unary(Opcode code, DType t, double a) {
  if (code == Opcode::neg) return -a;
  if (code == Opcode::abs) return std::fabs(a);
  if (code == Opcode::sqrt) return std::sqrt(a);
  if (code == Opcode::rsqrt) return 1 / std::sqrt(a);
  if (code == Opcode::exp) return std::exp(a);
  if (code == Opcode::exp2) return std::exp2(a);
  if (code == Opcode::log) return std::log(a);
  if (code == Opcode::sin) return std::sin(a);
  if (code == Opcode::cos) return std::cos(a);
  if (code == Opcode::tanh || code == Opcode::tanh_fast) return std::tanh(a);
  if (code == Opcode::erf || code == Opcode::erf_fast) return std::erf(a);
  if (code == Opcode::floor) return std::floor(a);
  if (code == Opcode::ceil) return std::ceil(a);
  if (code == Opcode::round) return std::nearbyint(a);
  no_such(code, t);
}

int64_t int_unary(Opcode code, DType t, int64_t a) {
  if (code == Opcode::neg) return as_signed(0 - as_unsigned(a));
  if (code == Opcode::abs) return is_signed_int(t) && a < 0 ? as_signed(0 - as_unsigned(a)) : a;
  if (code == Opcode::not_) return t == b1 ? !a : ~a;
  no_such(code, t);
}

/// An integer as a double from which rounding to any narrower format gives what rounding the
/// integer itself gives: where double cannot hold all digits, the lost ones leave a trace in the
/// last digit kept (round to odd).
double with_sticky_digit(DType t, int64_t v) {
  const bool negative = is_signed_int(t) && v < 0;
  uint64_t magnitude = negative ? 0 - as_unsigned(v) : as_unsigned(v);
  const int spare = 64 - std::countl_zero(magnitude | 1) - 53;
  if (spare > 0) {
    const uint64_t lost = magnitude & ((uint64_t{1} << spare) - 1);
    magnitude = (magnitude >> spare | (lost != 0)) << spare;
  }
  const double d = static_cast<double>(magnitude);
  return negative ? -d : d;
}

double int_to_double(DType t, int64_t v) {
  return is_signed_int(t) ? static_cast<double>(v) : static_cast<double>(as_unsigned(v));
}

}  // namespace

double round_to(DType t, double v) {
  if (t == f64) return v;
  if (t == f32) return static_cast<float>(v);
  return decode(t, encode(t, v));
}

int64_t wrap(DType t, int64_t v) {
  if (t == b1) return v != 0;
  const int spare = 64 - bits_of(t);
  const uint64_t top = as_unsigned(v) << spare;
  return is_signed_int(t) ? as_signed(top) >> spare : as_signed(top >> spare);
}

Scalar from_number(DType t, const Number& n) {
  if (is_float(t)) return Scalar::of_float(round_to(t, n.as_double()));
  return Scalar::of_int(n.integral ? wrap(t, n.i) : wrap(t, as_signed(encode_int(t, n.f))));
}

uint64_t to_bits(DType t, const Scalar& a) {
  if (is_float(t)) return encode(t, a.f);
  return as_unsigned(a.i) & (~uint64_t{0} >> (64 - bits(t)));
}

Scalar from_bits(DType t, uint64_t bits) {
  if (is_float(t)) return Scalar::of_float(decode(t, bits));
  return Scalar::of_int(wrap(t, as_signed(bits)));
}

DType compute_type(DType t) { return is_float(t) && t != f64 ? f32 : t; }

Scalar exact_unary(Opcode code, DType t, const Scalar& a) {
  if (!is_float(t)) return Scalar::of_int(wrap(t, int_unary(code, t, a.i)));
  return Scalar::of_float(round_to(t, float_unary(code, t, a.f)));
}

Scalar exact_binary(Opcode code, DType t, const Scalar& a, const Scalar& b) {
  if (const std::optional<bool> c = compare(code, t, a, b)) return Scalar::of_int(*c);
  if (!is_float(t)) return Scalar::of_int(wrap(t, int_binary(code, t, a.i, b.i)));
  if (t == f64) return Scalar::of_float(float_binary(code, t, a.f, b.f));
  const float x = static_cast<float>(a.f), y = static_cast<float>(b.f);
  return Scalar::of_float(round_to(t, float_binary(code, t, x, y)));
}

Scalar exact_cast(DType from, DType to, const CastAttr& how, uint32_t random, const Scalar& a) {
  if (is_float(to)) {
    double v = a.f;
    if (!is_float(from)) v = to == f64 ? int_to_double(from, a.i) : with_sticky_digit(from, a.i);
    return Scalar::of_float(decode(to, encode(to, v, how.rounding, how.saturate, random)));
  }
  if (is_float(from)) return Scalar::of_int(wrap(to, as_signed(encode_int(to, a.f))));
  return Scalar::of_int(wrap(to, a.i));
}

Scalar exact_bitcast(DType from, DType to, const Scalar& a) {
  return from_bits(to, to_bits(from, a));
}

}  // namespace tw
