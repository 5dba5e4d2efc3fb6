// Texts for one thread of a GPU: where the portable text of one lane is several lanes, or slow.
#include <algorithm>
#include <fmt/format.h>

#include "tw/emit/cpu/prelude.h"

namespace tw::cpu {
namespace {

/// CUDA has builtin functions, and instructions by `asm`. The emulator's form is for g++ and clang;
/// where it is empty the portable text serves there.
struct ThreadText {
  std::string name;
  std::vector<DType> types;
  std::string cuda, emu;
  std::string uses = {};
};

// In these $fma rounds once. The last bits of t are n: the exponent of q grows by it. Where 2^n q
// may be subnormal n is 64 more, and the result is scaled down.
std::string scaled(const std::string& largest) {
  return R"(  const bool small = c < -64.0f;
  const u32 raised = __builtin_bit_cast(u32, q) + (small ? 64u << 23 : 0u);
  const f32 y = __builtin_bit_cast(f32, raised + (__builtin_bit_cast(u32, t) << 23));
  const f32 scaled = small ? y * 5.42101086242752217e-20f : y;
  return x <= )" +
         largest + R"( ? scaled : x * __builtin_inff();
})";
}

// q = e^r and the rest of t, which is n and `magic` of 1.5 * 2^23 or so: e^c = 2^n q.
std::string exp_reduced(const std::string& magic) {
  return "  const f32 t = $fma(c, 1.44269504088896341f, " + magic + "), whole = t - " + magic + R"(;
  const f32 r = $fma(whole, 2.12194440e-4f, $fma(whole, -0.693359375f, c));
  f32 q = $fma(r, 1.403552480e-3f, 8.372301236e-3f);
  q = $fma(q, r, 4.166555032e-2f);
  q = $fma(q, r, 1.666648835e-1f);
  q = $fma(q, r, 0.5f);
  q = $fma(q, r, 1.0f);
  q = $fma(q, r, 1.0f);
)";
}

const char* const kExp = R"(// e^x, 1 ulp
TW_INLINE f32 tw_exp(f32 x) {
  const f32 c = x < -104.0f ? -104.0f : x;
)";

const char* const kExp2 = R"(// 2^x, 1 ulp
TW_INLINE f32 tw_exp2(f32 x) {
  const f32 c = x < -151.0f ? -151.0f : x;
  const f32 t = c + 12582912.0f, r = c - (t - 12582912.0f);
  f32 q = $fma(r, 1.581952820e-4f, 1.341823954e-3f);
  q = $fma(q, r, 9.617063217e-3f);
  q = $fma(q, r, 5.550272390e-2f);
  q = $fma(q, r, 2.402265519e-1f);
  q = $fma(q, r, 6.931472421e-1f);
  q = $fma(q, r, 1.0f);
)";

const char* const kLog = R"(// ln x, 1 ulp (Cephes)
TW_INLINE f32 tw_log(f32 x) {
  const bool tiny = x < 1.17549435e-38f;
  const i32 b = __builtin_bit_cast(i32, tiny ? x * 8388608.0f : x), e = (b - 0x3f3504f3) >> 23;
  const f32 n = (f32)(e - (tiny ? 23 : 0));
  const f32 r = __builtin_bit_cast(f32, (u32)b - ((u32)e << 23)) - 1.0f, z = r * r;
  f32 p = $fma(r, 7.0376836292e-2f, -1.1514610310e-1f);
  p = $fma(p, r, 1.1676998740e-1f);
  p = $fma(p, r, -1.2420140846e-1f);
  p = $fma(p, r, 1.4249322787e-1f);
  p = $fma(p, r, -1.6668057665e-1f);
  p = $fma(p, r, 2.0000714765e-1f);
  p = $fma(p, r, -2.4999993993e-1f);
  p = $fma(p, r, 3.3333331174e-1f);
  f32 y = $fma(n, -2.12194440e-4f, p * r * z);
  y = r + $fma(z, -0.5f, y);
  y = $fma(n, 0.693359375f, y);
  y = x == 0.0f ? -__builtin_inff() : y;
  y = x < 0.0f ? __builtin_nanf("") : y;
  return x < __builtin_inff() ? y : x;
})";

// Past 3.68 1 is nearer than the bound asks. The reciprocal is one step from an approximate one; q
// lies in [1.1, 500] up to there.
const char* const kErfFast = R"(// erf x, 6 ulp (rational 13/8)
TW_INLINE f32 tw_erf_fast(f32 x) {
  const f32 s = x * x;
  f32 p = $fma(s, 2.536753918e-8f, -2.261746658e-6f);
  p = $fma(p, s, 1.427019743e-4f);
  p = $fma(p, s, 3.256083932e-3f);
  p = $fma(p, s, 5.294527113e-2f);
  p = $fma(p, s, 1.990398765e-1f);
  p = $fma(p, s, 1.241217017f) * x;
  f32 q = $fma(s, 8.737024036e-4f, 1.407430787e-2f);
  q = $fma(q, s, 1.179468259e-1f);
  q = $fma(q, s, 5.430602431e-1f);
  q = $fma(q, s, 1.1f);
  const f32 one = __builtin_bit_cast(f32, (__builtin_bit_cast(u32, x) & 0x80000000) | 0x3f800000);
  f32 r = tw_near_reciprocal(q);
  r = $fma($fma(-q, r, 1.0f), r, r);
  return s > 13.5424f ? one : p * r;
})";

// a / (1 + e^y), sums and quotients a quarter of theirs, so that no reciprocal of a finite 1 + e^y
// is subnormal; those of infinities are 0. The last bits of t are the exponent's; 1 + e^-30 is 1.
std::string over_one_plus_exp() {
  return R"(// a / (1 + e^y), 2.7 ulp
TW_INLINE f32 tw_over_one_plus_exp(f32 a, f32 y) {
  const f32 c = tw_min(tw_max(y, -30.0f), 89.0f);
)" + exp_reduced("12583037.0f") +
         R"(  const f32 power = __builtin_bit_cast(f32, __builtin_bit_cast(u32, t) << 23);
  const f32 d = $fma(q, power, 0.25f);
  f32 s = tw_near_reciprocal(d);
  s = $fma($fma(-d, s, 1.0f), s, s);
  return 0.25f * a * s;
})";
}

/// A function that is one instruction.
ThreadText instruction(const std::string& name, const std::string& what) {
  return {name,
          {f32},
          fmt::format("TW_INLINE f32 tw_{}(f32 x) {{\n  f32 r;\n"
                      "  asm(\"{} %0, %1;\" : \"=f\"(r) : \"f\"(x));\n  return r;\n}}",
                      name, what),
          ""};
}

/// A function of the C library that is within what the language states.
ThreadText call(const std::string& name, DType t, const std::string& function) {
  const auto text = [&](const std::string& f) {
    return "TW_INLINE $V tw_" + name + "($V x) { return " + f + "(x); }";
  };
  return {name, {t}, text(function), text("__builtin_" + function)};
}

/// Exactly rounded, whatever the compiler's options say.
ThreadText square_root(const char* name, DType t, const char* cuda, const char* emu) {
  ThreadText row = call(name, t, emu);
  row.cuda = fmt::format("TW_INLINE $V tw_{}($V x) {{ return {}(x); }}", name, cuda);
  return row;
}

/// PTX: +0 is greater than -0; `how` says what a NaN does.
ThreadText extreme(const std::string& name, const std::string& how) {
  return {name,
          {f32},
          "TW_INLINE f32 tw_" + name + "(f32 a, f32 b) {\n  f32 r;\n  asm(\"" + how +
              ".f32 %0, %1, %2;\" : \"=f\"(r) : \"f\"(a), \"f\"(b));\n  return r;\n}",
          ""};
}

/// Conversions saturate; NaN gives 0 from f32 to 32 bits only.
ThreadText to_integer(DType to, DType from) {
  const bool wide = bits(to) == 64, is_signed = is_signed_int(to);
  const std::string n = name(to), type = name(register_type(to));
  const std::string whole = fmt::format("__{}2{}{}_rz(x)", from == f32 ? "float" : "double",
                                        is_signed ? "" : "u", wide ? "ll" : "int");
  std::string text = fmt::format("TW_INLINE {} tw_to_{}($V x) {{\n", type, n);
  if (bits(to) >= 32) {
    const bool guarded = wide || from == f64;
    text += fmt::format("  return {}{}{};\n}}", guarded ? "x == x ? " : "", whole,
                        guarded ? " : 0" : "");
    return {"to_" + n, {from}, text, ""};
  }
  text += fmt::format("  const {} r = {};\n", is_signed ? "i32" : "u32", whole);
  text += from == f64 ? "  if (x != x) return 0;\n" : "";
  text += is_signed ? fmt::format("  return r < {0:.0f} ? {0:.0f} : r > {1:.0f} ? {1:.0f} : r;\n}}",
                                  lowest(to), largest(to))
                    : fmt::format("  return r > {0:.0f} ? {0:.0f} : r;\n}}", largest(to));
  return {"to_" + n, {from}, text, ""};
}

const char* const kUnpackF16 = R"(TW_INLINE f32 tw_unpack_f16(u16 b) {
  f32 r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(b));
  return r;
})";
const char* const kPackF16 = R"(TW_INLINE u16 tw_pack_f16(f32 x) {
  u16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
})";
const char* const kRoundF16 = R"(TW_INLINE f32 tw_round_f16(f32 x) {
  u16 h;
  f32 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(h));
  return r;
})";
const char* const kRoundBf16 = R"(TW_INLINE f32 tw_round_bf16(f32 x) {
  u16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return __builtin_bit_cast(f32, (u32)h << 16);
})";

ThreadText narrow_pair(DType t) {
  return {"narrow",
          {t},
          fmt::format("TW_INLINE u32 tw_narrow_{0}x1(const f32* x) {{\n  u32 word;\n"
                      "  asm(\"cvt.rn.{0}x2.f32 %0, %1, %2;\" : \"=r\"(word) : \"f\"(x[1]), "
                      "\"f\"(x[0]));\n  return word;\n}}",
                      name(t)),
          ""};
}

// Past the largest number the instruction gives it, where rounding gives NaN.
const char* const kNarrowE4m3 = R"(TW_INLINE u32 tw_narrow_e4m3x1(const f32* x) {
  u32 word = 0;
#if __CUDA_ARCH__ >= 890
  u16 low, high;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(x[1]), "f"(x[0]));
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(x[3]), "f"(x[2]));
  word = low | (u32)high << 16;
  for (int k = 0; k < 4; ++k) word |= fabsf(x[k]) > 464.0f ? 0x7fu << 8 * k : 0;
#else
  for (int k = 0; k < 4; ++k) word |= (u32)tw_pack_e4m3(tw_round_e4m3(x[k])) << 8 * k;
#endif
  return word;
})";

// The instruction clamps.
const char* const kNarrowClamped = R"(TW_INLINE u32 tw_narrow_clamped_e4m3x1(const f32* x) {
#if __CUDA_ARCH__ >= 890
  u16 low, high;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(x[1]), "f"(x[0]));
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(x[3]), "f"(x[2]));
  return low | (u32)high << 16;
#else
  f32 y[4];
  for (int k = 0; k < 4; ++k) y[k] = tw_min(tw_max(x[k], -448.0f), 448.0f);
  return tw_narrow_e4m3x1(y);
#endif
})";

// The first half of an f16.
const char* const kUnpackE5m2 = R"(TW_INLINE f32 tw_unpack_e5m2(u8 b) {
  f32 r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((u16)(b << 8)));
  return r;
})";

// ptxas 13.0 makes one instruction of max(max(-x, y), z) for sm_90a and forgets the sign; it does
// not take these two for one.
const char* const kNegative = R"(TW_INLINE $V tw_negative($V x) {
  i32 r;
  asm("{.reg .b32 t; not.b32 t, %1; add.s32 %0, t, 1;}" : "=r"(r) : "r"((i32)x));
  return ($V)r;
})";

// NVIDIA's bounds are against correctly rounded results, so that "1 ulp" is more than 1 ulp of the
// true value: of f32 only functions that may be off by 2 are its own.
std::vector<ThreadText> make_rows() {
  const std::string exp = kExp + exp_reduced("12582912.0f") + scaled("88.7228317f"),
                    exp2 = kExp2 + scaled("127.999992f");
  std::vector<ThreadText> rows = {
      {"exp", {f32}, exp, exp},
      {"exp2", {f32}, exp2, exp2},
      {"log", {f32}, kLog, kLog},
      call("tanh", f32, "tanhf"),
      call("erf", f32, "erff"),
      call("tanh_fast", f32, "tanhf"),
      instruction("near_exp2", "ex2.approx.ftz.f32"),
      instruction("near_reciprocal", "rcp.approx.ftz.f32"),
      {"erf_fast", {f32}, kErfFast, kErfFast, "near_reciprocal"},
      {"over_one_plus_exp",
       {f32},
       over_one_plus_exp(),
       over_one_plus_exp(),
       "max min near_reciprocal"},
      call("sin", f32, "sinf"),
      call("cos", f32, "cosf"),
      call("exp_f64", f64, "exp"),
      call("exp2_f64", f64, "exp2"),
      call("log_f64", f64, "log"),
      call("tanh_f64", f64, "tanh"),
      call("erf_f64", f64, "erf"),
      call("tanh_fast_f64", f64, "tanh"),
      call("erf_fast_f64", f64, "erf"),
      call("sin_f64", f64, "sin"),
      call("cos_f64", f64, "cos"),
      square_root("sqrt", f32, "__fsqrt_rn", "sqrtf"),
      square_root("sqrt_f64", f64, "__dsqrt_rn", "sqrt"),
      call("floor", f32, "floorf"),
      call("ceil", f32, "ceilf"),
      call("round", f32, "rintf"),
      call("floor", f64, "floor"),
      call("ceil", f64, "ceil"),
      call("round", f64, "rint"),
      extreme("max", "max.NaN"),
      extreme("min", "min.NaN"),
      extreme("max_num", "max"),
      extreme("min_num", "min"),
      {"negative", {i8, i16, i32}, kNegative, ""},
      // Part of the instruction that takes it, where bits would be masked.
      instruction("fabs", "abs.f32"),
      {"unpack_f16", {f16}, kUnpackF16, ""},
      {"pack_f16", {f16}, kPackF16, ""},
      {"round_f16", {f16}, kRoundF16, ""},
      {"round_bf16", {bf16}, kRoundBf16, ""},
      {"unpack_e5m2", {e5m2}, kUnpackE5m2, ""},
      narrow_pair(f16),
      narrow_pair(bf16),
      {"narrow", {e4m3}, kNarrowE4m3, "", "round_$D pack_$D"},
      {"narrow_clamped", {e4m3}, kNarrowClamped, "", "narrow max:f32 min:f32"},
  };
  for (const DType to : {i8, i16, i32, i64, u8, u16, u32, u64, i1, i2, i3,
                         i4, i5,  i6,  i7,  u1, u2,  u3,  u4,  u5, u6, u7}) {
    for (const DType from : {f32, f64}) rows.push_back(to_integer(to, from));
  }
  return rows;
}

}  // namespace

static const std::vector<ThreadText>& thread_rows() {
  static const std::vector<ThreadText> rows = make_rows();
  return rows;
}

std::vector<std::pair<std::string, DType>> thread_texts() {
  std::vector<std::pair<std::string, DType>> all;
  for (const ThreadText& row : thread_rows()) {
    for (const DType t : row.types) all.emplace_back(row.name, t);
  }
  return all;
}

std::optional<PreludeFunction> thread_function(const CpuMachine& machine, const std::string& name,
                                               DType t) {
  for (const ThreadText& row : thread_rows()) {
    if (row.name != name || std::ranges::find(row.types, t) == row.types.end()) continue;
    const std::string& text = machine.isa == "cuda" ? row.cuda : row.emu;
    if (!text.empty()) return PreludeFunction{name, row.uses, text, ""};
  }
  return std::nullopt;
}

const CpuMachine& thread_machine(Thread kind) {
  static const CpuMachine cuda{.name = "thread", .isa = "cuda", .march = "", .vector_bytes = 1};
  static const CpuMachine emulated{
      .name = "emulated thread", .isa = "emu", .march = "", .vector_bytes = 1};
  return kind == Thread::cuda ? cuda : emulated;
}

}  // namespace tw::cpu
