#include "tw/num/codec.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tw {
namespace {

// The bit layout of a floating type: sign, exponent field, fraction of m bits.
struct Format {
  int m;
  int least;  // exponent of the smallest normal number
  int sign_at;
  bool powers;            // e8m0: no zero, no subnormals, no sign
  uint64_t infinity;      // code of the all-ones exponent with fraction 0
  uint64_t largest;       // code of the largest finite value
  uint64_t past_largest;  // what overflow gives

  explicit Format(DType t) {
    const DTypeInfo& f = info(t);
    m = f.mantissa_bits;
    powers = t == e8m0;
    least = (powers ? 1 : 2) - (1 << (f.exponent_bits - 1));
    sign_at = m + f.exponent_bits;
    infinity = ((uint64_t{1} << f.exponent_bits) - 1) << m;
    largest = infinity - 1;
    past_largest = infinity;
    if (t == e4m3) {  // numbers fill the top exponent but for the last code, a NaN
      largest = infinity + 6;
      past_largest = infinity + 7;
    } else if (is_packed(t)) {
      largest = past_largest = (uint64_t{1} << sign_at) - 1;
    }
  }
};

// significand * 2^exponent, with a sign.
struct Exact {
  bool negative;
  uint64_t significand;
  int exponent;
};

Exact exact(double value) {
  constexpr int fraction_bits = 52;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint64_t fraction = bits & ((uint64_t{1} << fraction_bits) - 1);
  const int field = static_cast<int>(bits >> fraction_bits) & 0x7ff;
  const uint64_t hidden = field == 0 ? 0 : uint64_t{1} << fraction_bits;
  return {bits >> 63 != 0, hidden | fraction, std::max(field, 1) - 1023 - fraction_bits};
}

// What lies below the last place kept, as a fraction of it.
struct Discarded {
  uint32_t high;  // the first 32 bits
  bool more;      // anything after those

  Discarded(uint64_t significand, int shift) {
    if (shift <= 0) {
      high = 0, more = false;
      return;
    }
    const uint64_t rest = shift >= 64 ? significand : significand & ((uint64_t{1} << shift) - 1);
    if (shift <= 32) {
      high = static_cast<uint32_t>(rest << (32 - shift)), more = false;
    } else {
      const int below = shift - 32;
      high = below >= 64 ? 0 : static_cast<uint32_t>(rest >> below);
      more = below >= 64 ? rest != 0 : (rest & ((uint64_t{1} << below) - 1)) != 0;
    }
  }
  bool any() const { return high != 0 || more; }
};

bool away_from_zero(Rounding r, const Discarded& d, bool negative, bool odd, uint32_t random) {
  constexpr uint32_t half = 0x80000000u;
  switch (r) {
    case Rounding::RN:
      return d.high > half || (d.high == half && (d.more || odd));
    case Rounding::RZ:
      return false;
    case Rounding::RU:
      return !negative && d.any();
    case Rounding::SR:
      return uint64_t{d.high} + random > std::numeric_limits<uint32_t>::max();
  }
  return false;
}

bool overflow_stops_at_largest(Rounding r, bool negative, bool saturate) {
  return saturate || r == Rounding::RZ || (r == Rounding::RU && negative);
}

uint64_t round_to(const Format& f, const Exact& x, Rounding r, bool saturate, uint32_t random) {
  if (f.powers && x.significand == 0) return 0;
  if (f.powers && x.negative) return f.past_largest;
  const uint64_t sign = uint64_t{x.negative} << f.sign_at;
  if (x.significand == 0) return sign;
  const int top = x.exponent + std::bit_width(x.significand) - 1;
  const int last_place = std::max(top, f.least) - f.m;
  const int shift = last_place - x.exponent;
  uint64_t kept = shift >= 64 ? 0 : shift >= 0 ? x.significand >> shift : x.significand << -shift;
  const Discarded rest(x.significand, shift);
  if (away_from_zero(r, rest, x.negative, kept & 1, random)) ++kept;
  // The hidden bit of a normal number adds one to the exponent field, and so does a carry out of
  // the fraction; a subnormal has neither. Without subnormals the fields count from 0.
  const int field = last_place + f.m - f.least;
  const uint64_t above = (static_cast<uint64_t>(field) << f.m) + kept;
  const uint64_t code = f.powers ? std::max<uint64_t>(above, 1) - 1 : above;
  if (code <= f.largest) return sign | code;
  return sign | (overflow_stops_at_largest(r, x.negative, saturate) ? f.largest : f.past_largest);
}

uint64_t encode_nan(const Format& f, DType t, double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  if (is_packed(t)) return f.largest;
  if (f.powers) return f.past_largest;
  const uint64_t sign = (bits >> 63) << f.sign_at;
  if (t == e4m3) return sign | f.past_largest;
  const uint64_t quiet = uint64_t{1} << (f.m - 1);
  const uint64_t payload = (bits & ((uint64_t{1} << 52) - 1)) >> (52 - f.m);
  return sign | f.infinity | quiet | payload;
}

}  // namespace

double decode(DType t, uint64_t bits) {
  if (t == f64) return std::bit_cast<double>(bits);
  const Format f(t);
  if (f.powers)
    return bits == f.past_largest ? std::numeric_limits<double>::quiet_NaN()
                                  : std::ldexp(1.0, static_cast<int>(bits) + f.least);
  const bool negative = bits >> f.sign_at & 1;
  const uint64_t code = bits & ((uint64_t{1} << f.sign_at) - 1);
  const uint64_t fraction = code & ((uint64_t{1} << f.m) - 1);
  if (code > f.largest) {  // infinity has fraction 0, a NaN has not
    const uint64_t special = uint64_t{0x7ff} << 52 | fraction << (52 - f.m);
    return std::bit_cast<double>(uint64_t{negative} << 63 | special);
  }
  const int field = static_cast<int>(code >> f.m);
  const uint64_t significand = (field == 0 ? 0 : uint64_t{1} << f.m) | fraction;
  const double magnitude =
      std::ldexp(static_cast<double>(significand), std::max(field, 1) - 1 + f.least - f.m);
  return negative ? -magnitude : magnitude;
}

uint64_t encode(DType t, double value, Rounding r, bool saturate, uint32_t random) {
  const Format f(t);
  if (std::isnan(value)) return encode_nan(f, t, value);
  if (f.powers && std::isinf(value) && value < 0) return f.past_largest;
  if (std::isinf(value))
    return uint64_t{std::signbit(value)} << f.sign_at | (saturate ? f.largest : f.past_largest);
  return round_to(f, exact(value), r, saturate, random);
}

uint64_t encode_signed(DType t, int64_t value, Rounding r, bool saturate, uint32_t random) {
  const uint64_t bits = static_cast<uint64_t>(value);
  const Exact x{value < 0, value < 0 ? uint64_t{0} - bits : bits, 0};
  return round_to(Format(t), x, r, saturate, random);
}

uint64_t encode_unsigned(DType t, uint64_t value, Rounding r, bool saturate, uint32_t random) {
  return round_to(Format(t), {false, value, 0}, r, saturate, random);
}

uint64_t encode_int(DType t, double value) {
  if (t == b1) return value != 0;
  const uint64_t mask = ~uint64_t{0} >> (64 - bits(t));
  const uint64_t top = mask >> (is_signed_int(t) ? 1 : 0);
  if (std::isnan(value)) return 0;
  const double whole = std::trunc(value);
  if (whole >= largest(t)) return top;
  if (whole <= lowest(t)) return is_signed_int(t) ? top + 1 : 0;
  if (whole < 0) return static_cast<uint64_t>(static_cast<int64_t>(whole)) & mask;
  return static_cast<uint64_t>(whole);
}

}  // namespace tw
