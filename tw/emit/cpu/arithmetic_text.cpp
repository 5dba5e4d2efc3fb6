#include <fmt/format.h>

#include "tw/emit/cpu/prelude.h"

namespace tw::cpu {
namespace {

/// A function on integers that has no vector instruction: its scalar text, and a loop over lanes.
/// g++ 12 gives -1 for 1 in two lanes that it sees to be comparisons, as x / x is for x >= 0; `asm`
/// hides them.
PreludeFunction by_lane(const std::string& name, const std::string& body) {
  return {name, name + "/1", "TW_INLINE $V tw_" + name + "($V a, $V b) { " + body + " }",
          "TW_INLINE $V tw_" + name +
              "($V a, $V b) {\n  for (int l = 0; l < $L; ++l) {\n    $E q = tw_" + name +
              "(a[l], b[l]);\n    asm(\"\" : \"+r\"(q));  // g++ 12 takes known 0 and 1 for masks\n"
              "    a[l] = q;\n  }\n  return a;\n}"};
}

PreludeFunction same(const std::string& name, const std::string& uses, const std::string& text) {
  return {name, uses, text, ""};
}

const char* const kSignedEven = "($W)b << 8 >> 8";
const char* const kSignedOdd = "($W)b >> 8";

/// Four products a lane as two sums of two: bytes with even and with odd numbers.
PreludeFunction dot4(const std::string& name, const std::string& a, const std::string& b,
                     const std::string& even_a, const std::string& odd_a, const std::string& even_b,
                     const std::string& odd_b) {
  return {"dot4_" + name, "pair_sum", "",
          "TW_INLINE $V tw_dot4_" + name + "($V c, " + a + " a, " + b +
              " b) {\n  const $V even = " + "tw_pair_sum(" + even_a + ", " + even_b +
              ");\n  const $V odd = tw_pair_sum(" + odd_a + ", " + odd_b +
              ");\n  return ($V)(($U)c + ($U)(even + odd));\n}"};
}

/// Each of so many lanes several times.
PreludeFunction spread_lanes(int from) {
  return {fmt::format("spread_{}", from), "", "",
          fmt::format("TW_INLINE $V tw_spread_{0}(f32x{0} x) {{\n  $V v;\n"
                      "  for (int l = 0; l < $L; ++l) v[l] = x[l * {0} / $L];\n  return v;\n}}",
                      from)};
}

}  // namespace

// budget: table, one entry a function
std::vector<PreludeFunction> arithmetic_functions() {
  return {
      {"bits", "", "TW_INLINE $I tw_bits($V x) { return __builtin_bit_cast($I, x); }",
       "TW_INLINE $I tw_bits($V x) { return ($I)x; }"},
      {"real", "", "TW_INLINE $V tw_real($I x) { return __builtin_bit_cast($V, x); }",
       "TW_INLINE $V tw_real($I x) { return ($V)x; }"},
      {"add", "", "TW_INLINE $V tw_add($V a, $V b) { return ($V)((u64)a + (u64)b); }",
       "TW_INLINE $V tw_add($V a, $V b) { return ($V)(($U)a + ($U)b); }"},
      {"sub", "", "TW_INLINE $V tw_sub($V a, $V b) { return ($V)((u64)a - (u64)b); }",
       "TW_INLINE $V tw_sub($V a, $V b) { return ($V)(($U)a - ($U)b); }"},
      {"mul", "", "TW_INLINE $V tw_mul($V a, $V b) { return ($V)((u64)a * (u64)b); }",
       "TW_INLINE $V tw_mul($V a, $V b) { return ($V)(($U)a * ($U)b); }"},
      by_lane("div_signed", "return b == 0 ? ($V)0 : b == -1 ? ($V)(0 - (u64)a) : ($V)(a / b);"),
      by_lane("div_unsigned", "return b == 0 ? ($V)0 : ($V)(a / b);"),
      by_lane("rem_signed", "return b == 0 || b == -1 ? ($V)0 : ($V)(a % b);"),
      by_lane("rem_unsigned", "return b == 0 ? ($V)0 : ($V)(a % b);"),
      {"shl", "",
       "TW_INLINE $V tw_shl($V a, $V b) { return ($U)b < $N ? ($V)((u64)a << b) : ($V)0; }",
       "TW_INLINE $V tw_shl($V a, $V b) {\n"
       "  return ($V)((($U)a << (($U)b & ($N - 1))) & ($U)(($U)b < $N));\n}"},
      {"shr_signed", "",
       "TW_INLINE $V tw_shr_signed($V a, $V b) { return ($V)(a >> (($U)b < $N ? b : $N - 1)); }",
       "TW_INLINE $V tw_shr_signed($V a, $V b) {\n"
       "  const $V inside = ($V)(($U)b < $N);\n"
       "  return a >> ((b & inside) | (~inside & ($N - 1)));\n}"},
      {"shr_unsigned", "",
       "TW_INLINE $V tw_shr_unsigned($V a, $V b) { return b < $N ? ($V)(a >> b) : ($V)0; }",
       "TW_INLINE $V tw_shr_unsigned($V a, $V b) {\n"
       "  return (a >> (b & ($N - 1))) & ($V)(b < $N);\n}"},
      same("negative", "sub", "TW_INLINE $V tw_negative($V x) { return tw_sub($V{}, x); }"),
      same("lesser", "", "TW_INLINE $V tw_lesser($V a, $V b) { return a < b ? a : b; }"),
      same("greater", "", "TW_INLINE $V tw_greater($V a, $V b) { return a > b ? a : b; }"),
      same("magnitude", "sub",
           "TW_INLINE $V tw_magnitude($V a) { return a < 0 ? tw_sub($V{}, a) : a; }"),
      same("fabs", "bits real", "TW_INLINE $V tw_fabs($V a) { return tw_real(tw_bits(a) & $H); }"),
      // a > b ? a : b is b when either is NaN; the other arms add what it lacks.
      same("max", "bits real",
           "TW_INLINE $V tw_max($V a, $V b) {\n"
           "  const $V m = a > b ? a : b;\n"
           "  const $V same = tw_real(tw_bits(a) & tw_bits(b));\n"
           "  const $V r = a == b ? same : m;\n"
           "  return a != a ? a : r;\n}"),
      same("min", "bits real",
           "TW_INLINE $V tw_min($V a, $V b) {\n"
           "  const $V m = a < b ? a : b;\n"
           "  const $V same = tw_real(tw_bits(a) | tw_bits(b));\n"
           "  const $V r = a == b ? same : m;\n"
           "  return a != a ? a : r;\n}"),
      same("max_num", "max",
           "TW_INLINE $V tw_max_num($V a, $V b) {\n"
           "  const $V r = b != b ? a : tw_max(a, b);\n"
           "  return a != a ? b : r;\n}"),
      same("min_num", "min",
           "TW_INLINE $V tw_min_num($V a, $V b) {\n"
           "  const $V r = b != b ? a : tw_min(a, b);\n"
           "  return a != a ? b : r;\n}"),
      // Sums of four neighbouring products of bytes, or of two of 16-bit integers, added to c: u
      // and i say which are unsigned and signed; of `small` the unsigned ones are below 128.
      {"pair_sum", "", "",
       "TW_INLINE $V tw_pair_sum($W a, $W b) {\n  const $V x = ($V)a, y = ($V)b;\n"
       "  return (x << 16 >> 16) * (y << 16 >> 16) + (x >> 16) * (y >> 16);\n}"},
      dot4("ui", "$A", "$M", "($W)(($R)a & 255)", "($W)(($R)a >> 8)", kSignedEven, kSignedOdd),
      dot4("small", "$A", "$M", "($W)(($R)a & 255)", "($W)(($R)a >> 8)", kSignedEven, kSignedOdd),
      dot4("ii", "$M", "$M", "($W)a << 8 >> 8", "($W)a >> 8", kSignedEven, kSignedOdd),
      dot4("uu", "$A", "$A", "($W)(($R)a & 255)", "($W)(($R)a >> 8)", "($W)(($R)b & 255)",
           "($W)(($R)b >> 8)"),
      {"lookup", "", "",
       "TW_INLINE $V tw_lookup(const $E* table, $I number) {\n  $V r;\n"
       "  for (int l = 0; l < $L; ++l) r[l] = table[number[l] & 15];\n  return r;\n}"},
      {"extend", "", "",
       "TW_INLINE i32x$L tw_extend($V v) { return __builtin_convertvector(v, i32x$L); }"},
      {"low", "", "", "TW_INLINE $G tw_low($V v) { return __builtin_shufflevector(v, v, $Y); }"},
      spread_lanes(2),
      spread_lanes(4),
      {"join", "", "",
       "TW_INLINE $V tw_join($G a, $G b) { return __builtin_shufflevector(a, b, $Z); }"},
      {"high", "", "", "TW_INLINE $G tw_high($V v) { return __builtin_shufflevector(v, v, $T); }"},
      {"iota", "", "", "TW_INLINE $V tw_iota_$Dx$L() { return ($V){$Z}; }"},
      {"below", "iota", "",
       "TW_INLINE $V tw_below_$Dx$L(i64 n) {\n"
       "  return tw_iota_$Dx$L() < ($E)min(max(n, 0), $L);\n}"},
  };
}

}  // namespace tw::cpu
