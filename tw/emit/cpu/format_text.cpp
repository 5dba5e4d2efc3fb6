#include <cmath>
#include <fmt/format.h>

#include "tw/emit/cpu/prelude.h"
#include "tw/emit/cpu/writer.h"

namespace tw::cpu {
namespace {

// Text that is right for one lane and for several: $(extend) and $(shrink) differ.
PreludeFunction both(const std::string& name, const std::string& uses, const std::string& pattern,
                     const Fill& scalar, const Fill& vector) {
  return {name, uses, fill(pattern, scalar), fill(pattern, vector)};
}

// Patterns are filled twice: here, and per instance in prelude.cpp; these words pass through.
Fill passed_through(Fill own) {
  for (const char* w : {"V", "E", "I", "U", "B", "Q", "L", "D", "N", "H"}) {
    own.emplace_back(w, std::string("$") + w);
  }
  return own;
}

PreludeFunction both(const std::string& name, const std::string& uses, const std::string& pattern) {
  return both(name, uses, pattern,
              passed_through({{"extend", "($U)b"}, {"shrink", "($B)r"}, {"one", "1"}}),
              passed_through({{"extend", "__builtin_convertvector(b, $U)"},
                              {"shrink", "__builtin_convertvector(r, $B)"},
                              {"one", "1"}}));
}

// 16-bit and 8-bit formats as f32 bits moved by the distance of their exponents. The product with a
// power of two is exact and gives subnormals their value.
const char* const kUnpackBf16 =
    "TW_INLINE $V tw_unpack_bf16($Q b) { return tw_real(($I)($extend << 16)); }";
const char* const kUnpackF16 = R"(TW_INLINE $V tw_unpack_f16($Q b) {
  const $U h = $extend, m = (h & 0x7fff) << 13;
  const $V finite = tw_real(($I)m) * 0x1p112f, special = tw_real(($I)(m | 0x7f800000));
  const $V r = m < 0xf800000 ? finite : special;
  return tw_real(tw_bits(r) | ($I)((h & 0x8000) << 16));
})";
const char* const kUnpackE5m2 = R"(TW_INLINE $V tw_unpack_e5m2($Q b) {
  const $U h = $extend << 8, m = (h & 0x7fff) << 13;
  const $V finite = tw_real(($I)m) * 0x1p112f, special = tw_real(($I)(m | 0x7f800000));
  const $V r = m < 0xf800000 ? finite : special;
  return tw_real(tw_bits(r) | ($I)((h & 0x8000) << 16));
})";
const char* const kUnpackE4m3 = R"(TW_INLINE $V tw_unpack_e4m3($Q b) {
  const $U h = $extend, m = (h & 0x7f) << 20;
  const $V finite = tw_real(($I)m) * 0x1p120f, none = tw_real(($I)(m | 0x7f800000));
  const $V r = m < 0x7f00000 ? finite : none;
  return tw_real(tw_bits(r) | ($I)((h & 0x80) << 24));
})";

// Of values that the format holds: see the round functions.
const char* const kPackBf16 = R"(TW_INLINE $Q tw_pack_bf16($V x) {
  const $U r = ($U)tw_bits(x) >> 16;
  return $shrink;
})";
const char* const kPackF16 = R"(TW_INLINE $Q tw_pack_f16($V x) {
  const $U u = ($U)tw_bits(x), a = u & 0x7fffffff;
  const $U finite = ($U)tw_bits(tw_real(($I)a) * 0x1p-112f) >> 13;
  const $U special = 0x7c00 | (a >> 13 & 0x3ff);
  const $U r = (a < 0x7f800000 ? finite : special) | (u >> 16 & 0x8000);
  return $shrink;
})";
const char* const kPackE5m2 = R"(TW_INLINE $Q tw_pack_e5m2($V x) {
  const $U u = ($U)tw_bits(x), a = u & 0x7fffffff;
  const $U finite = ($U)tw_bits(tw_real(($I)a) * 0x1p-112f) >> 21;
  const $U special = 0x7c | (a >> 21 & 3);
  const $U r = (a < 0x7f800000 ? finite : special) | (u >> 24 & 0x80);
  return $shrink;
})";
const char* const kPackE4m3 = R"(TW_INLINE $Q tw_pack_e4m3($V x) {
  const $U u = ($U)tw_bits(x), a = u & 0x7fffffff;
  const $U finite = ($U)tw_bits(tw_real(($I)a) * 0x1p-120f) >> 20;
  const $U none = $U{} + 0x7f;
  const $U r = (a < 0x7f800000 ? finite : none) | (u >> 24 & 0x80);
  return $shrink;
})";

// 6-bit and 4-bit floats, which are all numbers. Subnormals go through sums: products with
// subnormal f32 are slow on some machines.
const char* const kUnpackTiny = R"(TW_INLINE $V tw_unpack_$name($Q b) {
  const $U h = $extend, m = (h & $magnitude) << $drop;
  const $V normal = tw_real(($I)(m + $rebias)), subnormal = tw_real(($I)(m + $base)) - $smallest;
  const $V r = m < 0x800000 ? subnormal : normal;
  return tw_real(tw_bits(r) | ($I)((h & $sign) << $up));
})";
const char* const kPackTiny = R"(TW_INLINE $Q tw_pack_$name($V x) {
  const $U u = ($U)tw_bits(x), a = u & 0x7fffffff, normal = (a - $rebias) >> $drop;
  const $U subnormal = (($U)tw_bits(tw_real(($I)a) + $smallest) - $base) >> $drop;
  const $U r = (a < $base ? subnormal : normal) | (u >> $up & $sign);
  return $shrink;
})";

// Powers of two: 2^-127, the least, is subnormal in f32.
const char* const kUnpackE8m0 = R"(TW_INLINE $V tw_unpack_e8m0($Q b) {
  const $U h = $extend, power = h << 23, least = $U{} + 0x400000, none = $U{} + 0x7fc00000;
  const $U r = h == 0 ? least : power;
  return tw_real(($I)(h == 255 ? none : r));
})";
const char* const kPackE8m0 = R"(TW_INLINE $Q tw_pack_e8m0($V x) {
  const $U r = ($U)tw_bits(x) >> 23 & 0xff;
  return $shrink;
})";

// To the nearest value of the format, ties to even, as f32. Adding half a unit to the bits carries
// into the exponent as it should; below the smallest normal number a large addend aligns the unit.
const char* const kRoundBf16 = R"(TW_INLINE $V tw_round_bf16($V x) {
  const $U u = ($U)tw_bits(x);
  const $U nearest = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000, none = (u | 0x400000) & 0xffff0000;
  return tw_real(($I)(x == x ? nearest : none));
})";
const char* const kRoundSmall = R"(TW_INLINE $V tw_round_$name($V x) {
  const $U u = ($U)tw_bits(x), m = u & 0x7fffffff;
  const $V a = tw_real(($I)m);
  const $V normal = tw_real(($I)((m + $half + (m >> $drop & 1)) & $mask));
  const $V subnormal = (a + $align) - $align;
  const $V past = $V{} + $past, none = tw_real(($I)((m | 0x400000) & $mask));
  $V r = a < $smallest ? subnormal : normal;
  r = r > $largest ? $over : r;
  r = x == x ? r : none;
  return tw_real(tw_bits(r) | ($I)(u & 0x80000000));
})";

const char* const kRoundTiny = R"(TW_INLINE $V tw_round_$name($V x) {
  const $U u = ($U)tw_bits(x), m = u & 0x7fffffff;
  const $V a = tw_real(($I)m), most = $V{} + $largest;
  const $V normal = tw_real(($I)((m + $half + (m >> $drop & 1)) & $mask));
  const $V subnormal = (a + $align) - $align;
  const $V finite = a < $smallest ? subnormal : normal;
  const $V r = finite < $largest ? finite : most;
  return x == x ? tw_real(tw_bits(r) | ($I)(u & 0x80000000)) : most;
})";
// A tie goes up. Negative numbers and what is past 2^127 become NaN.
const char* const kRoundE8m0 = R"(TW_INLINE $V tw_round_e8m0($V x) {
  const $U u = ($U)tw_bits(x), m = u & 0x7fffffff;
  const $U least = $U{} + 0x400000, none = $U{} + 0x7fc00000, nearest = (m + 0x400000) & 0x7f800000;
  const $U power = m < 0x600000 ? least : nearest;
  const $U r = m < 0x7f400000 ? power : none;
  return tw_real(($I)(u > 0x80000000 ? none : r));
})";

Fill small_words(DType t) {
  const DTypeInfo& d = info(t);
  const int drop = 23 - d.mantissa_bits, bias = (1 << (d.exponent_bits - 1)) - 1;
  const double smallest = std::ldexp(1.0, 1 - bias);
  return {{"name", d.name},
          {"drop", std::to_string(drop)},
          {"half", fmt::format("{:#x}", (1u << (drop - 1)) - 1)},
          {"mask", fmt::format("{:#x}", ~((1u << drop) - 1))},
          {"align", fmt::format("{:a}f", smallest * std::ldexp(1.0, drop))},
          {"smallest", fmt::format("{:a}f", smallest)},
          {"largest", fmt::format("{:.1f}f", largest(t))},
          {"magnitude", fmt::format("{:#x}", (1u << (d.bits - 1)) - 1)},
          {"rebias", fmt::format("{:#x}", (127 - bias) << 23)},
          {"base", fmt::format("{:#x}", (128 - bias) << 23)},
          {"sign", fmt::format("{:#x}", 1u << (d.bits - 1))},
          {"up", std::to_string(32 - d.bits)}};
}

/// A format without infinity and NaN.
void add_tiny(DType t, std::vector<PreludeFunction>& out) {
  const std::string n = name(t), uses = "bits:f32 real:f32";
  const auto filled = [&](const char* pattern, const char* scalar, const char* vector) {
    Fill words = passed_through(small_words(t)), lanes = words;
    const bool pack = pattern == kPackTiny;
    words.emplace_back(pack ? "shrink" : "extend", scalar);
    lanes.emplace_back(pack ? "shrink" : "extend", vector);
    return std::pair(fill(pattern, words), fill(pattern, lanes));
  };
  const auto unpack = filled(kUnpackTiny, "($U)b", "__builtin_convertvector(b, $U)");
  const auto pack = filled(kPackTiny, "($B)r", "__builtin_convertvector(r, $B)");
  out.push_back({"unpack_" + n, uses, unpack.first, unpack.second});
  out.push_back({"pack_" + n, uses, pack.first, pack.second});
  out.push_back({"round_" + n, uses, fill(kRoundTiny, passed_through(small_words(t))), ""});
}

PreludeFunction round_small(DType t, const char* past) {
  Fill own = small_words(t);
  own.emplace_back("past", past);
  own.emplace_back("over", "past");
  return {std::string("round_") + name(t), "bits:f32 real:f32",
          fill(kRoundSmall, passed_through(own)), ""};
}

// Any rounding, from f64: m fraction bits, e the exponent of the smallest normal number.
const char* const kRoundTo =
    R"(// the nearest (0), toward zero (1), up (2) or stochastic (3) neighbour in a float format
$inline f64 tw_round_to(f64 x, int m, int e, f64 largest, f64 past, int mode, bool saturate,
                              u32 random) {
  const u64 bits = __builtin_bit_cast(u64, x);
  const u64 magnitude = bits & 0x7fffffffffffffff;
  // Compilers fold the way to f64 and back, which would make a NaN quiet; packing cuts its bits.
  if (magnitude > 0x7ff0000000000000) return __builtin_bit_cast(f64, bits | 0x8000000000000);
  const bool negative = bits >> 63;
  f64 r = __builtin_bit_cast(f64, magnitude);
  if (magnitude < 0x7ff0000000000000 && magnitude != 0) {
    const int own = (int)(magnitude >> 52) - 1023;
    const int unit = (own < e ? e : own) - m;
    const f64 scale = __builtin_bit_cast(f64, (u64)(unit + 1023) << 52);
    const f64 s = r / scale;
    const f64 whole = (f64)(i64)s, part = s - whole;
    const bool odd = (i64)s & 1;
    const bool up = mode == 0   ? part > 0.5 || (part == 0.5 && odd)
                    : mode == 1 ? false
                    : mode == 2 ? part > 0 && !negative
                                : (u64)(part * 0x1p32) + random > 0xffffffffu;
    r = (whole + (up ? 1.0 : 0.0)) * scale;
    if (r > largest) r = mode == 1 || (mode == 2 && negative) ? largest : past;
  } else if (magnitude != 0) {
    r = past;
  }
  if (saturate && !(r <= largest)) r = largest;
  return negative ? -r : r;
})";

// Where there is neither infinity nor NaN, and where there is neither zero nor sign.
const char* const kRoundToNumber =
    R"(TW_INLINE f64 tw_round_to_number(f64 x, int m, int e, f64 largest, f64 past, int mode,
                                 bool saturate, u32 random) {
  return tw_round_to(x == x ? x : largest, m, e, largest, past, mode, saturate, random);
})";
const char* const kRoundToPower =
    R"(TW_INLINE f64 tw_round_to_power(f64 x, int m, int, f64 largest, f64 past, int mode,
                                bool saturate, u32 random) {
  if (!(x >= 0)) return __builtin_nan("");
  const f64 r = tw_round_to(x, m, -127, largest, past, mode, saturate, random);
  return r < 0x1p-127 ? 0x1p-127 : r;
})";

const char* const kPhilox = R"(// word 0 of Philox 4x32-10
$inline u32 tw_philox(u64 seed, u64 stream, u64 counter) {
  u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = (u32)(seed >> 32);
  u32 c3 = (u32)(stream >> 32), k0 = (u32)seed, k1 = (u32)stream;
  for (int round = 0; round < 10; ++round) {
    const u64 p = (u64)c0 * 0xD2511F53u, q = (u64)c2 * 0xCD9E8D57u;
    c0 = (u32)(q >> 32) ^ c1 ^ k0;
    c1 = (u32)q;
    c2 = (u32)(p >> 32) ^ c3 ^ k1;
    c3 = (u32)p;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c0;
})";

// Words of 32 bits in lanes of 64, for the products.
const char* const kPhiloxLanes = R"(// word 0 of Philox 4x32-10, lane by lane
static inline u32x$L tw_philox(u64 seed, u64 stream, $V counter) {
  $V c0 = counter & 0xffffffffu, c1 = counter >> 32, c2 = (seed >> 32) - ($V){};
  $V c3 = (stream >> 32) - ($V){};
  u32 k0 = (u32)seed, k1 = (u32)stream;
  for (int round = 0; round < 10; ++round) {
    const $V p = c0 * 0xD2511F53u, q = c2 * 0xCD9E8D57u;
    c0 = (q >> 32) ^ c1 ^ (u64)k0;
    c1 = q & 0xffffffffu;
    c2 = (p >> 32) ^ c3 ^ (u64)k1;
    c3 = p & 0xffffffffu;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return __builtin_convertvector(c0, u32x$L);
})";

/// Float to integer: toward zero, saturating, NaN gives 0. From f32 or f64 ($V). Of an integer that
/// becomes a float again g++ 12 would make trunc(x), which keeps the sign of zero; `asm` hides it.
PreludeFunction to_integer(DType to) {
  const int bits = info(to).bits;
  const bool is_signed = is_signed_int(to);
  const double past = std::ldexp(1.0, bits - (is_signed ? 1 : 0));
  const std::string n = name(to), type = name(register_type(to));
  const std::string low = !is_signed   ? "0"
                          : bits == 64 ? "-0x7fffffffffffffff - 1"
                                       : fmt::format("{:.0f}", lowest(to));
  const std::string high = bits == 64 ? (is_signed ? "0x7fffffffffffffff" : "0xffffffffffffffff")
                                      : fmt::format("{:.0f}u", largest(to));
  const std::string scalar = fmt::format(
      "TW_INLINE {0} tw_to_{5}($V x) {{\n"
      "  {0} r = !(x > {1}) ? (x <= {1} ? ({0})({2}) : 0) : x >= {3:.1f} ? ({0}){4} : ({0})x;\n"
      "  asm(\"\" : \"+r\"(r));\n  return r;\n}}",
      type, is_signed ? fmt::format("{:.1f}", -past) : "-1.0", low, past, high, n);
  const std::string vector = fmt::format(
      "TW_INLINE {0}x$L tw_to_{1}($V x) {{\n  {0}x$L r;\n"
      "  for (int l = 0; l < $L; ++l) r[l] = tw_to_{1}(x[l]);\n  return r;\n}}",
      type, n);
  return {"to_" + n, "to_" + n + "/1", scalar, vector};
}

/// A packed integer by itself has its bits in a byte; as a value it is a number of 8 bits.
void add_packed_integer(DType t, std::vector<PreludeFunction>& out) {
  const std::string n = name(t);
  const int mask = (1 << info(t).bits) - 1, sign = 1 << (info(t).bits - 1);
  const std::string value =
      is_signed_int(t) ? fmt::format("($V)((b ^ {0}) - {0})", sign) : std::string("b");
  out.push_back(
      {"unpack_" + n, "", "TW_INLINE $V tw_unpack_" + n + "($Q b) { return " + value + "; }", ""});
  out.push_back(
      {"pack_" + n, "",
       "TW_INLINE $Q tw_pack_" + n + "($V x) { return ($Q)x & " + std::to_string(mask) + "; }",
       ""});
  out.push_back(to_integer(t));
}

// f32 to i32 lanes without a branch: the clamp leaves only values that convert exactly as asked.
const char* const kToI32 = R"(TW_INLINE $I tw_to_i32($V x) {
  const $V low = $V{} - 0x1p31f, high = $V{} + 0x1.fffffep30f;
  $V c = x < low ? low : x;
  c = c > high ? high : c;
  const $I most = $I{} + 0x7fffffff;
  const $I r = __builtin_convertvector(x == x ? c : $V{}, $I);
  return x >= 0x1p31f ? most : r;
})";

}  // namespace

std::vector<PreludeFunction> format_functions() {
  std::vector<PreludeFunction> out;
  for (const DType t : {i8, i16, i32, i64, u8, u16, u32, u64, f32, f64}) {
    const std::string n = name(t);
    out.push_back({"unpack_" + n, "", "TW_INLINE $V tw_unpack_" + n + "($Q b) { return b; }", ""});
    out.push_back({"pack_" + n, "", "TW_INLINE $Q tw_pack_" + n + "($V x) { return x; }", ""});
    if (is_int(t)) out.push_back(to_integer(t));
  }
  out.push_back(
      {"unpack_b1", "", "TW_INLINE $E tw_unpack_b1($Q b) { return b != 0; }",
       "TW_INLINE $V tw_unpack_b1($Q b) { return __builtin_convertvector(b, $V) != 0; }"});
  out.push_back({"pack_b1", "", "TW_INLINE $Q tw_pack_b1($E x) { return x; }",
                 "TW_INLINE $Q tw_pack_b1($V x) { return __builtin_convertvector(x, $Q) & 1; }"});
  const std::string as_f32 = "bits:f32 real:f32";
  out.push_back(both("unpack_bf16", as_f32, kUnpackBf16));
  out.push_back(both("unpack_f16", as_f32, kUnpackF16));
  out.push_back(both("unpack_e5m2", as_f32, kUnpackE5m2));
  out.push_back(both("unpack_e4m3", as_f32, kUnpackE4m3));
  out.push_back(both("pack_bf16", as_f32, kPackBf16));
  out.push_back(both("pack_f16", as_f32, kPackF16));
  out.push_back(both("pack_e5m2", as_f32, kPackE5m2));
  out.push_back(both("pack_e4m3", as_f32, kPackE4m3));
  for (const DType t : {e3m2, e2m3, e2m1}) add_tiny(t, out);
  out.push_back(both("unpack_e8m0", as_f32, kUnpackE8m0));
  out.push_back(both("pack_e8m0", as_f32, kPackE8m0));
  out.push_back({"round_e8m0", as_f32, kRoundE8m0, ""});
  for (const DType t : {i1, i2, i3, i4, i5, i6, i7, u1, u2, u3, u4, u5, u6, u7})
    add_packed_integer(t, out);
  out.push_back({"round_bf16", as_f32, kRoundBf16, ""});
  out.push_back(round_small(f16, "__builtin_inff()"));
  out.push_back(round_small(e5m2, "__builtin_inff()"));
  out.push_back(round_small(e4m3, "__builtin_nanf(\"\")"));
  // Round to odd: what is rounded again to a shorter format then rounds as if once.
  out.push_back({"sticky_signed", "sticky_unsigned:u64",
                 "TW_INLINE f64 tw_sticky(i64 x) {\n"
                 "  return x < 0 ? -tw_sticky(0 - (u64)x) : tw_sticky((u64)x);\n}",
                 ""});
  out.push_back({"sticky_unsigned", "",
                 "TW_INLINE f64 tw_sticky(u64 x) {\n"
                 "  if (x >> 53) x = (x & ~0x7fful) | ((u64)((x & 0x7ff) != 0) << 11);\n"
                 "  return (f64)x;\n}",
                 ""});
  out.push_back({"philox", "", kPhilox, kPhiloxLanes});
  out.push_back({"round_to", "", kRoundTo, kRoundTo});
  out.push_back({"round_to_number", "round_to", kRoundToNumber, kRoundToNumber});
  out.push_back({"round_to_power", "round_to", kRoundToPower, kRoundToPower});
  out.push_back({"to_i32_lanes", "", "", kToI32});
  return out;
}

}  // namespace tw::cpu
