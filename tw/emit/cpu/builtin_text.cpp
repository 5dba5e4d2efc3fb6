#include <algorithm>
#include <fmt/format.h>

#include "tw/emit/cpu/prelude.h"

namespace tw::cpu {
namespace {

// Functions for which vector extensions have no text of one instruction. Every one has a portable
// form in the other tables; `types` lists what it serves, of `lanes` lanes. The isa "vnni" stands
// before the others for machines that have it.
constexpr int kWhole = 0;  // lanes of one register or more, from 16 bytes on
constexpr int kAny = -1;   // several lanes
struct Builtin {
  const char* isa;  ///< "fma": those that round a * b + c once
  const char* name;
  std::vector<DType> types;
  int lanes;
  std::string text;
  const char* uses = "";  ///< as in PreludeFunction
};

const char* const kMaskBits = R"(  const u32 upto = (1u << min(max(last, 0), $L)) - 1;
  const u32 mask = upto & ~((1u << min(max(first, 0), $L)) - 1);
)";

// Here the last step rounds once what the portable text rounds twice, so a shorter one is as near.
const char* const kPolynomialOnce = R"(TW_INLINE $V tw_exp_polynomial($V r) {
  $V q = r * 1.403552480e-3f + 8.372301236e-3f;
  q = q * r + 4.166555032e-2f;
  q = q * r + 1.666648835e-1f;
  q = q * r + 0.5f;
  q = q * r + 1.0f;
  return q * r + 1.0f;
})";

const char* const kExp2PolynomialOnce = R"(TW_INLINE $V tw_exp2_polynomial($V r) {
  $V q = r * 1.581952820e-4f + 1.341823954e-3f;
  q = q * r + 9.617063217e-3f;
  q = q * r + 5.550272390e-2f;
  q = q * r + 2.402265519e-1f;
  q = q * r + 6.931472421e-1f;
  return q * r + 1.0f;
})";

// As tanh_fast; where a * b + c rounds twice it would be off by 7 ulp.
const char* const kErfFastOnce = R"(// erf x, 6 ulp (rational 13/8)
TW_INLINE $V tw_erf_fast($V x) {
  const $V low = tw_constant_$Dx$L(-3.68f), high = tw_constant_$Dx$L(3.68f);
  $V a = low > x ? low : x;
  a = high < a ? high : a;
  const $V s = a * a;
  $V p = s * 2.536753918e-8f - 2.261746658e-6f;
  p = p * s + 1.427019743e-4f;
  p = p * s + 3.256083932e-3f;
  p = p * s + 5.294527113e-2f;
  p = p * s + 1.990398765e-1f;
  p = p * s + 1.241217017f;
  $V q = s * 8.737024036e-4f + 1.407430787e-2f;
  q = q * s + 1.179468259e-1f;
  q = q * s + 5.430602431e-1f;
  q = q * s + 1.1f;
  const $V y = p * a / q;
  const $V size = ($V)(($I)x & 0x7fffffff), one = ($V)((($I)x & ~0x7fffffff) | 0x3f800000);
  return size > 3.68f ? one : y;
})";

// pi/2 in three parts: the first difference is exact, as is each product within its sum.
const char* const kQuartersOnce = R"(TW_INLINE $V tw_quarters($V a, $I* n) {
  const $V t = a * 0.636619772f + 12582912.0f, k = t - 12582912.0f;
  *n = ($I)t;
  $V r = a - k * 1.57079637f;
  r = r - k * -4.37113883e-8f;
  return r - k * -1.71512451e-15f;
})";

// Sums of products of neighbours. 2 * 127 * 128 fits i16, so that the sums of two saturate nowhere.
const char* const kPairSum128 =
    "TW_INLINE $V tw_pair_sum($W a, $W b) { return __builtin_ia32_pmaddwd128(a, b); }";
const char* const kPairSum256 =
    "TW_INLINE $V tw_pair_sum($W a, $W b) { return __builtin_ia32_pmaddwd256(a, b); }";
const char* const kPairSum512 =
    "TW_INLINE $V tw_pair_sum($W a, $W b) {\n#if defined(__clang__)\n"
    "  return __builtin_ia32_pmaddwd512(a, b);\n#else\n"
    "  return __builtin_ia32_pmaddwd512_mask(a, b, $V{}, -1);\n#endif\n}";
const char* const kSmallDot =
    "TW_INLINE $V tw_dot4_small($V c, $A a, $M b) {\n"
    "  typedef char Bytes __attribute__((vector_size($size)));\n"
    "  const $W pairs = __builtin_ia32_pmaddubsw$bits((Bytes)a, (Bytes)b);\n"
    "  return ($V)(($U)c + ($U)__builtin_ia32_pmaddwd$bits(pairs, ($W){} + (i16)1));\n}";
const char* const kSmallDot512 =
    "TW_INLINE $V tw_dot4_small($V c, $A a, $M b) {\n"
    "  typedef char Bytes __attribute__((vector_size(64)));\n#if defined(__clang__)\n"
    "  const $W pairs = __builtin_ia32_pmaddubsw512((Bytes)a, (Bytes)b);\n"
    "  return ($V)(($U)c + ($U)__builtin_ia32_pmaddwd512(pairs, ($W){} + (i16)1));\n#else\n"
    "  const $W pairs = __builtin_ia32_pmaddubsw512_mask((Bytes)a, (Bytes)b, $W{}, -1);\n"
    "  return ($V)(($U)c + ($U)__builtin_ia32_pmaddwd512_mask(pairs, ($W){} + (i16)1, $V{}, -1));\n"
    "#endif\n}";
// vpdpbusd multiplies unsigned by signed bytes and does not saturate. Of operands of one sign,
// a + 128 or a - 128 has the sign wanted, and 128 times the sum of b comes off again.
std::string vpdpbusd(const char* sum, const char* a, const char* b) {
  return fmt::format(
      "#if defined(__clang__)\n  {0} = __builtin_ia32_vpdpbusd$bits({0}, ($V)({1}), ($V)({2}));\n"
      "#else\n  {0} = __builtin_ia32_vpdpbusd$ints({0}, ($V)({1}), ($V)({2}));\n#endif\n",
      sum, a, b);
}
std::string vnni_dot(const char* name) {
  return fmt::format("TW_INLINE $V tw_dot4_{}($V c, $A a, $M b) {{\n{}  return c;\n}}", name,
                     vpdpbusd("c", "a", "b"));
}
std::string vnni_ii() {
  return "TW_INLINE $V tw_dot4_ii($V c, $M a, $M b) {\n  $V more = {};\n" +
         vpdpbusd("c", "($A)a ^ (u8)128", "b") + vpdpbusd("more", "($A){} + (u8)128", "b") +
         "  return ($V)(($U)c - ($U)more);\n}";
}
std::string vnni_uu() {
  return "TW_INLINE $V tw_dot4_uu($V c, $A a, $A b) {\n  $V less = {};\n" +
         vpdpbusd("c", "b", "a ^ (u8)128") + vpdpbusd("less", "b", "($M){} - (i8)127 - (i8)1") +
         "  return ($V)(($U)c - ($U)less);\n}";
}

// Of the portable form g++ 12 makes a load and an instruction for every byte.
std::string extend(const char* sign, const char* suffix, const std::string& call) {
  return fmt::format(
      "TW_INLINE i32x$L tw_extend($V v) {{\n#if defined(__clang__)\n"
      "  return __builtin_convertvector(v, i32x$L);\n#else\n"
      "  typedef char Bytes __attribute__((vector_size(16)));\n"
      "  return (i32x$L)__builtin_ia32_pmov{}xbd{}({});\n#endif\n}}",
      sign, suffix, call);
}
std::string extend_16(const char* sign) {
  return extend(sign, "512_mask", "(Bytes)v, i32x16{}, -1");
}
std::string extend_8(const char* sign) {
  return extend(sign, "256", "(Bytes)(i64x2){__builtin_bit_cast(i64, v), 0}");
}
std::string extend_4(const char* sign) {
  return extend(sign, "128", "(Bytes)(i64x2){__builtin_bit_cast(i32, v), 0}");
}

const char* const kUnpackF16 =
    "TW_INLINE $E tw_unpack_f16($S b) {\n  const i16x8 lanes = {(i16)b};\n"
    "  return __builtin_ia32_vcvtph2ps(lanes)[0];\n}";
const char* const kUnpackF16In8 =
    "TW_INLINE $V tw_unpack_f16($Q b) { return __builtin_ia32_vcvtph2ps256((i16x8)b); }";
const char* const kUnpackF16In16 =
    "TW_INLINE $V tw_unpack_f16($Q b) {\n"
    "  return __builtin_ia32_vcvtph2ps512_mask((i16x16)b, ($V){}, -1, 4);\n}";
// Of a shuffle that puts one half after the other g++ 12 makes two.
const char* const kJoin256 =
    "TW_INLINE $V tw_join($G a, $G b) {\n#if defined(__clang__)\n"
    "  return __builtin_shufflevector(a, b, $Z);\n#else\n"
    "  typedef int Half __attribute__((vector_size(16)));\n"
    "  return ($V)__builtin_ia32_vinsertf128_si256(__builtin_ia32_si256_si((Half)a), (Half)b, 1);\n"
    "#endif\n}";
const char* const kJoin512 =
    "TW_INLINE $V tw_join($G a, $G b) {\n#if defined(__clang__)\n"
    "  return __builtin_shufflevector(a, b, $Z);\n#else\n"
    "  typedef int Half __attribute__((vector_size(32)));\n"
    "  typedef int Whole __attribute__((vector_size(64)));\n"
    "  const Whole low = __builtin_ia32_si512_256si((Half)a);\n"
    "  return ($V)__builtin_ia32_inserti32x8_mask(low, (Half)b, 1, low, -1);\n#endif\n}";
std::string spread(int from) {
  std::string lanes;
  for (int l = 0; l < 16; ++l) lanes += fmt::format("{}{}", l ? ", " : "", l * from / 16);
  return fmt::format(
      "TW_INLINE $V tw_spread_{0}(f32x{0} x) {{\n#if defined(__clang__)\n"
      "  return __builtin_shufflevector(x, x, {1});\n#else\n"
      "  const f32x16 wide = __builtin_ia32_ps512_ps({2});\n"
      "  return __builtin_ia32_permvarsf512_mask(wide, (i32x16){{{1}}}, wide, -1);\n#endif\n}}",
      from, lanes, from == 2 ? "(f32x4){x[0], x[1]}" : "x");
}
// The entry, of sixteen, that a lane names.
const char* const kLookup16 =
    "TW_INLINE $V tw_lookup(const $E* table, $I number) {\n"
    "  const f32x16 all = (f32x16)*(const $P*)table;\n#if defined(__clang__)\n"
    "  return ($V)__builtin_ia32_permvarsf512(all, number);\n#else\n"
    "  return ($V)__builtin_ia32_permvarsf512_mask(all, number, all, -1);\n#endif\n}";
const char* const kLookup8 =
    "TW_INLINE $V tw_lookup(const $E* table, $I number) {\n"
    "  const f32x8 low = __builtin_ia32_permvarsf256((f32x8)*(const $P*)table, number);\n"
    "  const f32x8 high = __builtin_ia32_permvarsf256((f32x8)*(const $P*)(table + 8), number);\n"
    "  return ($V)__builtin_ia32_blendvps256(low, high, (f32x8)(number << 28));\n}";
// Bytes are permuted within 16 bytes, so every 16 of a register hold the table.
std::string lookup_bytes(const char* call) {
  return fmt::format(
      "TW_INLINE $V tw_lookup(const $E* table, $I number) {{\n"
      "  typedef char Table __attribute__((vector_size(16), aligned(1), may_alias));\n"
      "  typedef char Bytes __attribute__((vector_size($L)));\n"
      "  const Table t = *(const Table*)table;\n{}}}",
      call);
}
const char* const kBytes16 = "  return ($V)__builtin_ia32_pshufb128((Bytes)t, (Bytes)number);\n";
const char* const kBytes32 =
    "  const Bytes all = __builtin_shufflevector(t, t, $Z);\n"
    "  return ($V)__builtin_ia32_pshufb256(all, (Bytes)number);\n";
const char* const kBytes64 =
    "  const auto half = __builtin_shufflevector(t, t, $Y);\n"
    "  const Bytes all = __builtin_shufflevector(half, half, $Z);\n#if defined(__clang__)\n"
    "  return ($V)__builtin_ia32_pshufb512(all, (Bytes)number);\n#else\n"
    "  return ($V)__builtin_ia32_pshufb512_mask(all, (Bytes)number, all, -1);\n#endif\n";

const Builtin kBuiltins[] = {
    {"fma", "exp_polynomial", {f32}, kAny, kPolynomialOnce},
    {"fma", "exp2_polynomial", {f32}, kAny, kExp2PolynomialOnce},
    {"fma", "erf_fast", {f32}, kAny, kErfFastOnce, "constant"},
    {"fma", "quarters", {f32}, kAny, kQuartersOnce},
    {"avx512", "unpack_f16", {f16}, 1, kUnpackF16},
    {"avx2", "unpack_f16", {f16}, 1, kUnpackF16},
    {"avx512", "unpack_f16", {f16}, 16, kUnpackF16In16},
    {"avx512", "unpack_f16", {f16}, 8, kUnpackF16In8},
    {"avx2", "unpack_f16", {f16}, 8, kUnpackF16In8},
    {"avx512", "spread_2", {f32}, 16, spread(2)},
    {"avx512", "spread_4", {f32}, 16, spread(4)},
    {"avx512", "join", {i8, u8}, 64, kJoin512},
    {"avx512", "join", {i8, u8}, 32, kJoin256},
    {"avx512", "join", {i32, u32, f32}, 16, kJoin512},
    {"avx512", "join", {i32, u32, f32}, 8, kJoin256},
    {"avx512", "lookup", {f32, i32, u32}, 16, kLookup16},
    {"avx512", "lookup", {f32, i32, u32}, 8, kLookup8},
    {"avx512", "lookup", {i8, u8}, 64, lookup_bytes(kBytes64)},
    {"avx512", "lookup", {i8, u8}, 32, lookup_bytes(kBytes32)},
    {"avx512", "lookup", {i8, u8}, 16, lookup_bytes(kBytes16)},
    {"avx2", "lookup", {f32, i32, u32}, 8, kLookup8},
    {"avx2", "lookup", {i8, u8}, 32, lookup_bytes(kBytes32)},
    {"avx2", "lookup", {i8, u8}, 16, lookup_bytes(kBytes16)},
    {"avx512", "extend", {i8}, 16, extend_16("s")},
    {"avx512", "extend", {u8}, 16, extend_16("z")},
    {"avx512", "extend", {i8}, 8, extend_8("s")},
    {"avx512", "extend", {u8}, 8, extend_8("z")},
    {"avx512", "extend", {i8}, 4, extend_4("s")},
    {"avx512", "extend", {u8}, 4, extend_4("z")},
    {"avx2", "extend", {i8}, 8, extend_8("s")},
    {"avx2", "extend", {u8}, 8, extend_8("z")},
    {"avx2", "extend", {i8}, 4, extend_4("s")},
    {"avx2", "extend", {u8}, 4, extend_4("z")},
    {"vnni", "dot4_ui", {i32}, kWhole, vnni_dot("ui")},
    {"vnni", "dot4_small", {i32}, kWhole, vnni_dot("small")},
    {"vnni", "dot4_ii", {i32}, kWhole, vnni_ii()},
    {"vnni", "dot4_uu", {i32}, kWhole, vnni_uu()},
    {"avx512", "pair_sum", {i32}, 16, kPairSum512},
    {"avx512", "pair_sum", {i32}, 8, kPairSum256},
    {"avx512", "pair_sum", {i32}, 4, kPairSum128},
    {"avx512", "dot4_small", {i32}, 16, kSmallDot512},
    {"avx512", "dot4_small", {i32}, 8, kSmallDot},
    {"avx512", "dot4_small", {i32}, 4, kSmallDot},
    {"avx2", "pair_sum", {i32}, 8, kPairSum256},
    {"avx2", "pair_sum", {i32}, 4, kPairSum128},
    {"avx2", "dot4_small", {i32}, 8, kSmallDot},
    {"avx2", "dot4_small", {i32}, 4, kSmallDot},
    // Of `mask ? greater(a, b) : b` on short integers g++ 12 makes one instruction, and ends with
    // an internal error when the wrong operand lies in memory: the result stays apart.
    {"avx512",
     "greater",
     {i8, u8, i16, u16},
     kWhole,
     "TW_INLINE $V tw_greater($V a, $V b) {\n  $V r = a > b ? a : b;\n  asm(\"\" : \"+v\"(r));\n"
     "  return r;\n}"},
    {"avx512",
     "lesser",
     {i8, u8, i16, u16},
     kWhole,
     "TW_INLINE $V tw_lesser($V a, $V b) {\n  $V r = a < b ? a : b;\n  asm(\"\" : \"+v\"(r));\n"
     "  return r;\n}"},
    {"avx512",
     "exp_scaled",
     {f32},
     16,
     "TW_INLINE $V tw_exp_scaled($V q, $V t, $V n) {\n"
     "  return __builtin_ia32_scalefps512_mask(q, n, q, -1, 4);\n}"},
    {"avx512",
     "exp_scaled",
     {f32},
     8,
     "TW_INLINE $V tw_exp_scaled($V q, $V t, $V n) {\n"
     "  return __builtin_ia32_scalefps256_mask(q, n, q, -1);\n}"},
    {"avx512",
     "exp_scaled",
     {f32},
     4,
     "TW_INLINE $V tw_exp_scaled($V q, $V t, $V n) {\n"
     "  return __builtin_ia32_scalefps128_mask(q, n, q, -1);\n}"},
    {"avx2",
     "exp_usual",
     {f32},
     8,
     "TW_INLINE int tw_exp_usual($V x) {\n"
     "  const $I usual = ($V)(($I)x & 0x7fffffff) < 87.0f;\n"
     "  return __builtin_expect(__builtin_ia32_movmskps256(($V)usual) == 255, 1);\n}"},
    {"avx2",
     "exp_usual",
     {f32},
     4,
     "TW_INLINE int tw_exp_usual($V x) {\n"
     "  const $I usual = ($V)(($I)x & 0x7fffffff) < 87.0f;\n"
     "  return __builtin_expect(__builtin_ia32_movmskps(($V)usual) == 15, 1);\n}"},
    {"avx512",
     "any",
     {i32},
     16,
     "TW_INLINE int tw_any($V m) { return __builtin_ia32_cvtd2mask512(m); }"},
    {"avx512",
     "any",
     {i32},
     8,
     "TW_INLINE int tw_any($V m) { return __builtin_ia32_cvtd2mask256(m); }"},
    {"avx512",
     "any",
     {i32},
     4,
     "TW_INLINE int tw_any($V m) { return __builtin_ia32_cvtd2mask128(m); }"},
    {"avx2",
     "any",
     {i32},
     8,
     "TW_INLINE int tw_any($V m) { return __builtin_ia32_movmskps256((f32x8)m); }"},
    {"avx2",
     "any",
     {i32},
     4,
     "TW_INLINE int tw_any($V m) { return __builtin_ia32_movmskps((f32x4)m); }"},
    {"avx512",
     "sqrt",
     {f32},
     16,
     "TW_INLINE $V tw_sqrt($V x) {\n#if defined(__clang__)\n"
     "  return __builtin_ia32_sqrtps512(x, 4);\n#else\n"
     "  return __builtin_ia32_sqrtps512_mask(x, x, -1, 4);\n#endif\n}"},
    {"avx512",
     "sqrt",
     {f32},
     8,
     "TW_INLINE $V tw_sqrt($V x) { return __builtin_ia32_sqrtps256(x); }"},
    {"avx2",
     "sqrt",
     {f32},
     8,
     "TW_INLINE $V tw_sqrt($V x) { return __builtin_ia32_sqrtps256(x); }"},
    {"avx512",
     "load_part",
     {f32, i32, u32},
     16,
     "TW_INLINE $V tw_load_part_$Dx$L(const $S* p, i64 first, i64 last, $S pad) {\n$mask"
     "  return ($V)__builtin_ia32_loadups512_mask((const f32*)p, (f32x16)(pad - ($Q){}), "
     "mask);\n}"},
    {"avx512",
     "store_part",
     {f32, i32, u32},
     16,
     "TW_INLINE void tw_store_part_$Dx$L($S* p, $V v, i64 last) {\n  const i64 first = 0;\n$mask"
     "  __builtin_ia32_storeups512_mask((f32*)p, (f32x16)v, mask);\n}"},
    {"avx2",
     "load_part",
     {f32, i32, u32},
     8,
     "TW_INLINE $V tw_load_part_$Dx$L(const $S* p, i64 first, i64 last, $S pad) {\n"
     "  const i32x8 lane = {0, 1, 2, 3, 4, 5, 6, 7};\n"
     "  const i32x8 mask = (lane >= (i32)min(max(first, 0), 8)) & (lane < (i32)min(max(last, 0), "
     "8));\n"
     "  const i32x8 v = (i32x8)__builtin_ia32_maskloadps256((const f32x8*)p, mask);\n"
     "  return ($V)(mask ? v : (i32x8)(pad - ($Q){}));\n}"},
    {"avx2",
     "store_part",
     {f32, i32, u32},
     8,
     "TW_INLINE void tw_store_part_$Dx$L($S* p, $V v, i64 last) {\n"
     "  const i32x8 lane = {0, 1, 2, 3, 4, 5, 6, 7};\n"
     "  const i32x8 mask = lane < (i32)min(max(last, 0), 8);\n"
     "  __builtin_ia32_maskstoreps256((f32x8*)p, mask, (f32x8)v);\n}"},
};

/// Names of builtins end in what they work on: "512", or "_v16si" where g++ says so.
std::string with_words(std::string text, int lanes) {
  const std::pair<const char*, std::string> words[] = {{"$mask", kMaskBits},
                                                       {"$bits", std::to_string(32 * lanes)},
                                                       {"$ints", fmt::format("_v{}si", lanes)},
                                                       {"$size", std::to_string(4 * lanes)}};
  for (const auto& [word, value] : words) {
    for (size_t at; (at = text.find(word)) != std::string::npos;) text.replace(at, 5, value);
  }
  return text;
}

std::optional<PreludeFunction> find_builtin(const std::string& isa, const std::string& name,
                                            DType t, int lanes) {
  const bool rounds_once = isa == "avx2" || isa == "avx512" || isa == "neon";
  for (const Builtin& b : kBuiltins) {
    const bool fits = b.lanes == kWhole ? lanes * bytes(t) >= 16
                      : b.lanes == kAny ? lanes > 1
                                        : lanes == b.lanes;
    const bool has = isa == b.isa || (rounds_once && b.isa == std::string("fma"));
    if (!has || name != b.name || !fits) continue;
    if (std::ranges::find(b.types, t) == b.types.end()) continue;
    return PreludeFunction{name, b.uses, with_words(b.text, lanes), ""};
  }
  return std::nullopt;
}

}  // namespace

std::optional<PreludeFunction> builtin_function(const CpuMachine& machine, const std::string& name,
                                                DType t, int lanes) {
  if (lanes == 1 && (machine.isa == "cuda" || machine.isa == "emu"))
    return thread_function(machine, name, t);
  if (machine.vnni) {
    if (auto found = find_builtin("vnni", name, t, lanes)) return found;
  }
  return find_builtin(machine.isa, name, t, lanes);
}

}  // namespace tw::cpu
