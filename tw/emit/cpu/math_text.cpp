#include "tw/emit/cpu/prelude.h"

namespace tw::cpu {
namespace {

PreludeFunction libm(const std::string& name, const std::string& call) {
  return {name, name + "/1", "TW_INLINE $V tw_" + name + "($V x) { return " + call + "(x); }",
          "TW_INLINE $V tw_" + name + "($V x) {\n  for (int l = 0; l < $L; ++l) x[l] = " + call +
              "(x[l]);\n  return x;\n}"};
}

// q * 2^n for q near 1, n an integer in [-151, 130], t = n + 1.5 * 2^23. Two exact factors: results
// below 2^-126 round once, results past the largest become infinity, NaN stays.
const char* const kScaled = R"(TW_INLINE $V tw_exp_scaled($V q, $V t, $V n) {
  const $I m = ($I)t - (0x4b400000 - 126);
  const $I tiny = m < 26;
  const $V small = $V{} + 0x1p-25f, usual = $V{} + 2.0f;
  return q * ($V)((m + (tiny & 26)) << 23) * (tiny ? small : usual);
})";

// e^r, |r| <= 0.35, with a last sum of numbers of which the smaller has half an ulp at most: within
// 1 ulp where a * b + c rounds twice. Machines with one rounding have texts in builtin_text.cpp.
const char* const kPolynomial = R"(TW_INLINE $V tw_exp_polynomial($V r) {
  $V q = r * 1.403552480e-3f + 8.372301236e-3f;
  q = q * r + 4.166555032e-2f;
  q = q * r + 1.666648835e-1f;
  q = q * r + 0.5f;
  q = q * (r * r) + r;
  return q + 1.0f;
})";

const char* const kExp2Polynomial = R"(TW_INLINE $V tw_exp2_polynomial($V r) {
  return tw_exp_polynomial(r * 0.693147182f + r * -1.90465421e-9f);
})";

// x = n ln 2 + r with |r| <= 0.35 and n = t - 1.5 * 2^23: Cody and Waite.
const char* const kReduce = R"(TW_INLINE $V tw_exp_reduce($V x, $V t) {
  const $V n = t - 12582912.0f;
  const $V r = x - n * 0.693359375f;
  return r + n * 2.12194440e-4f;
})";

// Whether 2^n is the exponent of a normal number for all x, so that adding n to that of e^r scales
// it; 0 where asking costs more than it saves.
const char* const kUsual = "TW_INLINE int tw_exp_usual($V x) { return 0; }";

// Below -104 the result is 0 and must not cost an underflow: softmax pads rows with -infinity.
const char* const kExp = R"(// e^x, 1 ulp
TW_INLINE $V tw_exp($V x) {
  const $V t = x * 1.44269504088896341f + 12582912.0f;  // the nearest integer in the low bits
  if (tw_exp_usual(x)) return ($V)(($I)tw_exp_polynomial(tw_exp_reduce(x, t)) + (($I)t << 23));
  const $V high = tw_constant_$Dx$L(89.0f), zero = {};
  const $I gone = x < -104.0f;
  $V c = gone ? zero : x;
  c = high < c ? high : c;
  const $V u = c * 1.44269504088896341f + 12582912.0f;
  const $V q = tw_exp_polynomial(tw_exp_reduce(c, u));
  const $V y = tw_exp_scaled(q, u, u - 12582912.0f);
  return gone ? zero : y;
})";

const char* const kExp2 = R"(// 2^x, 1 ulp
TW_INLINE $V tw_exp2($V x) {
  const $V t = x + 12582912.0f;
  if (tw_exp_usual(x)) return ($V)(($I)tw_exp2_polynomial(x - (t - 12582912.0f)) + (($I)t << 23));
  const $V high = tw_constant_$Dx$L(129.0f), zero = {};
  const $I gone = x < -151.0f;
  $V c = gone ? zero : x;
  c = high < c ? high : c;
  const $V u = c + 12582912.0f;
  const $V n = u - 12582912.0f;
  const $V y = tw_exp_scaled(tw_exp2_polynomial(c - n), u, n);
  return gone ? zero : y;
})";

const char* const kLog = R"(// ln x, 1 ulp (Cephes)
TW_INLINE $V tw_log($V x) {
  const $I tiny = x < 1.17549435e-38f;
  const $V xs = tiny ? x * 8388608.0f : x;
  const $I b = ($I)xs, e = (b - 0x3f3504f3) >> 23;
  const $V m = ($V)(b - (e << 23));
  const $V n = __builtin_convertvector(e - (tiny & 23), $V);
  const $V r = m - 1.0f, z = r * r;
  $V p = r * 7.0376836292e-2f - 1.1514610310e-1f;
  p = p * r + 1.1676998740e-1f;
  p = p * r - 1.2420140846e-1f;
  p = p * r + 1.4249322787e-1f;
  p = p * r - 1.6668057665e-1f;
  p = p * r + 2.0000714765e-1f;
  p = p * r - 2.4999993993e-1f;
  p = p * r + 3.3333331174e-1f;
  $V y = p * r * z;
  y = n * -2.12194440e-4f + y;
  y = y - 0.5f * z;
  y = r + y;
  y = n * 0.693359375f + y;
  const $V none = $V{} + __builtin_nanf(""), minus = $V{} - __builtin_inff();
  y = x == 0.0f ? minus : y;
  y = x < 0.0f ? none : y;
  return x < __builtin_inff() ? y : x;
})";

// Below 0.6 an odd polynomial; NaN takes it too. The tail of e^2a needs no scaling of exponents.
const char* const kTanh = R"(// tanh x, 2 ulp
TW_INLINE $V tw_tanh($V x) {
  const $V high = tw_constant_$Dx$L(9.02f), size = ($V)(($I)x & 0x7fffffff);
  const $V a = high < size ? high : size;
  const $V t = a * 2.88539008f + 12582912.0f;
  const $V e = ($V)(($I)tw_exp_polynomial(tw_exp_reduce(a + a, t)) + (($I)t << 23));
  const $V far = 1.0f - 2.0f / (e + 1.0f), s = size * size;
  $V p = s * -5.927178077e-3f + 2.082630619e-2f;
  p = p * s - 5.379400030e-2f;
  p = p * s + 1.333206445e-1f;
  p = p * s - 3.333330452e-1f;
  const $V near = p * s * size + size, y = size >= 0.6f ? far : near;
  return ($V)(($I)y | (($I)x & ~0x7fffffff));
})";

// Above 0.85 1 - e^g with a polynomial g = ln erfc.
const char* const kErf = R"(// erf x, 2 ulp
TW_INLINE $V tw_erf($V x) {
  const $V high = tw_constant_$Dx$L(4.0f), size = ($V)(($I)x & 0x7fffffff);
  const $V a = high < size ? high : size;
  $V g = a * 2.157075069e-4f - 3.229037160e-3f;
  g = g * a + 2.293472551e-2f;
  g = g * a - 1.053309962e-1f;
  g = g * a - 6.356663704e-1f;
  g = g * a - 1.285295486e-1f;
  g = g * a - a;
  const $V t = g * 1.44269504088896341f + 12582912.0f;
  const $V e = ($V)(($I)tw_exp_polynomial(tw_exp_reduce(g, t)) + (($I)t << 23));
  const $V far = 1.0f - e, s = size * size;
  $V p = s * -6.348518655e-4f + 5.057703704e-3f;
  p = p * s - 2.680728771e-2f;
  p = p * s + 1.128286496e-1f;
  p = p * s - 3.761259019e-1f;
  p = p * s + 1.283791661e-1f;
  const $V near = p * size + size, y = size >= 0.85f ? far : near;
  return ($V)(($I)y | (($I)x & ~0x7fffffff));
})";

// Past the clamp 1 is nearer than the bound asks; and y would stay below 1, so that -inf * (1 + y)
// were no NaN.
const char* const kTanhFast = R"(// tanh x, 6 ulp (rational 11/6)
TW_INLINE $V tw_tanh_fast($V x) {
  const $V low = tw_constant_$Dx$L(-8.05f), high = tw_constant_$Dx$L(8.05f);
  $V a = low > x ? low : x;
  a = high < a ? high : a;
  const $V s = a * a;
  $V p = s * 2.315662419e-11f - 1.458355747e-8f;
  p = p * s + 9.842182408e-6f;
  p = p * s + 2.982085338e-3f;
  p = p * s + 1.297577471e-1f;
  p = p * s + 1.0f;
  $V q = s * 2.366691187e-4f + 2.401266433e-2f;
  q = q * s + 4.630908966e-1f;
  q = q * s + 1.0f;
  const $V y = p * a / q;
  const $V size = ($V)(($I)x & 0x7fffffff), one = ($V)((($I)x & ~0x7fffffff) | 0x3f800000);
  return size > 8.05f ? one : y;
})";

// Of one lane, for what is rounded to bf16: within 2^-14 of the result, 1/64 of the last place.
// A reciprocal, of a number > 0, that would be subnormal is 0.
const char* const kOverOnePlusExpBf16 = R"(// a / (1 + e^y) for bf16
TW_INLINE f32 tw_over_one_plus_exp_bf16(f32 a, f32 y) {
  const f32 e = tw_near_exp2(y * 1.44269504088896341f);
  return 0.25f * a * tw_near_reciprocal($fma(e, 0.25f, 0.25f));
})";

const char* const kOnePlusTanhBf16 = R"(// 1 + tanh y for bf16
TW_INLINE f32 tw_one_plus_tanh_bf16(f32 y) {
  return tw_near_reciprocal($fma(tw_near_exp2(y * -2.88539008177792682f), 0.5f, 0.5f));
})";

// erfc z = e^(-z^2) times a polynomial in 1 / (1 + p z) (the form is that of Hastings).
const char* const kOnePlusErfBf16 = R"(// 1 + erf y for bf16
TW_INLINE f32 tw_one_plus_erf_bf16(f32 y) {
  const f32 t = tw_near_reciprocal($fma(tw_fabs(y), 0.53f, 1.0f));
  const f32 e = tw_near_exp2(y * (y * -1.44269504088896341f));
  f32 q = $fma(t, -0.18216590464f, 0.40346867035f);
  q = $fma(q, t, 0.16489191430f);
  q = $fma(q, t, 0.31592158321f);
  q = $fma(q, t, 0.29786995372f) * (t * e);
  return y < 0.0f ? q : 2.0f - q;
})";

const char* const kErfFast = "TW_INLINE $V tw_erf_fast($V x) { return tw_erf(x); }";

const char* const kAny = R"(TW_INLINE int tw_any($V m) {
  i32 any = 0;
  for (int l = 0; l < $L; ++l) any |= m[l];
  return any;
})";

// a = (4k + n) pi/2 + r for 0 <= a <= 2^17: k and the difference in double, where they are exact
// but for the last term. Machines with one rounding have a text in builtin_text.cpp.
const char* const kQuarters = R"(TW_INLINE $V tw_quarters($V a, $I* n) {
  const $f64 x = __builtin_convertvector(a, $f64);
  const $f64 k = (x * 0.63661977236758138 + 6755399441055744.0) - 6755399441055744.0;
  *n = __builtin_convertvector(k, $I);
  return __builtin_convertvector((x - k * 1.5707963267341256) - k * 6.0771005065061922e-11, $V);
})";

// The same for 2^9 <= a, by those digits of 2/pi that matter: Payne and Hanek. Two bits before the
// point and 62 after it are kept; no f32 is nearer to a multiple of pi/2 than 2^-31 or so of it.
const char* const kQuartersFar =
    R"(static __attribute__((noinline, unused)) f32 tw_quarters_far(f32 a, i32* n) {
  static const u32 two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                    0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
  const u32 bits = __builtin_bit_cast(u32, a);
  *n = 0;
  if (bits >= 0x7f800000) return a - a;
  const u32 first = (bits >> 23) - 120, shift = first & 31;
  const u32* const d = two_over_pi + (first >> 5);
  const u64 m = (bits & 0x7fffff) | 0x800000, low = (u64)d[2] << 32 | d[3];
  const u64 high = ((u64)d[0] << 32 | d[1]) << shift | (low >> 1) >> (63 - shift);
  const u64 turn = m * high + (m * (low << shift >> 32) >> 32);
  const u64 nearest = (turn + ((u64)1 << 61)) >> 62;
  *n = (i32)nearest;
  return (f32)((f64)(i64)(turn - (nearest << 62)) * 3.4061215800865545e-19);  // pi/2 * 2^-62
})";

const char* const kQuarterTurns = R"(TW_INLINE $V tw_quarter_turns($V a, $I* n) {
  $V r = tw_quarters(a, n);
  const $I far = ~(a <= 131072.0f);  // NaN too
  if (__builtin_expect(tw_any(far), 0)) {
    for (int l = 0; l < $L; ++l) {
      i32 quarters = (*n)[l];
      if (far[l]) r[l] = tw_quarters_far(a[l], &quarters);
      (*n)[l] = quarters;
    }
  }
  return r;
})";

// sin(r + n pi/2), |r| <= 0.81
const char* const kSinTurned = R"(TW_INLINE $V tw_sin_turned($V r, $I n) {
  const $V s = r * r;
  $V p = s * -1.949504804e-4f + 8.332011290e-3f;
  p = p * s - 1.666665226e-1f;
  const $V sine = p * s * r + r;
  $V q = s * 2.441122160e-5f - 1.388712553e-3f;
  q = q * s + 4.166664183e-2f;
  q = q * s - 0.5f;
  const $V cosine = q * s + 1.0f;
  const $V y = (n & 1) != 0 ? cosine : sine;
  return ($V)(($I)y ^ (n & 2) << 30);
})";

const char* const kSin = R"(// sin x, 2 ulp
TW_INLINE $V tw_sin($V x) {
  $I n;
  const $V r = tw_quarter_turns(($V)(($I)x & 0x7fffffff), &n);
  return ($V)(($I)tw_sin_turned(r, n) ^ (($I)x & ~0x7fffffff));
})";

const char* const kCos = R"(// cos x, 2 ulp
TW_INLINE $V tw_cos($V x) {
  $I n;
  const $V r = tw_quarter_turns(($V)(($I)x & 0x7fffffff), &n);
  return tw_sin_turned(r, n + 1);
})";

const char* const kSqrtScalar = "TW_INLINE $V tw_sqrt($V x) { return __builtin_sqrtf(x); }";
const char* const kSqrt64Scalar = "TW_INLINE $V tw_sqrt_f64($V x) { return __builtin_sqrt(x); }";
const char* const kSqrtVector =
    "TW_INLINE $V tw_sqrt($V x) {\n"
    "  for (int l = 0; l < $L; ++l) x[l] = __builtin_sqrtf(x[l]);\n  return x;\n}";
const char* const kSqrt64Vector =
    "TW_INLINE $V tw_sqrt_f64($V x) {\n"
    "  for (int l = 0; l < $L; ++l) x[l] = __builtin_sqrt(x[l]);\n  return x;\n}";

// Through the integer for magnitudes that have a fraction; the sign, that of zeros too, is kept.
const char* const kFloor = R"(TW_INLINE $V tw_floor($V x) {
  const $V whole = __builtin_convertvector(__builtin_convertvector(x, $I), $V);
  const $V down = whole > x ? whole - 1.0f : whole;
  const $V r = ($V)(($I)down | (($I)x & ~$H));
  return ($V)(($I)x & $H) < $C ? r : x;
})";
const char* const kCeil = R"(TW_INLINE $V tw_ceil($V x) {
  const $V whole = __builtin_convertvector(__builtin_convertvector(x, $I), $V);
  const $V up = whole < x ? whole + 1.0f : whole;
  const $V r = ($V)(($I)up | (($I)x & ~$H));
  return ($V)(($I)x & $H) < $C ? r : x;
})";
const char* const kRound = R"(TW_INLINE $V tw_round($V x) {
  const $V a = ($V)(($I)x & $H);
  const $V nearest = (a + $C) - $C;
  const $V r = ($V)(($I)nearest | (($I)x & ~$H));
  return a < $C ? r : x;
})";

}  // namespace

std::vector<PreludeFunction> math_functions() {
  return {
      {"constant", "", "",
       "// opaque: else g++ 12 turns a > b ? a : b with a constant into a compare and a blend\n"
       "TW_INLINE $V tw_constant_$Dx$L($E c) {\n  $V v = c - ($V){};\n"
       "#if !defined(__clang__)\n  __asm__(\"\" : \"+$K\"(v));\n#endif\n  return v;\n}"},
      {"exp_scaled", "", "", kScaled},
      {"exp_polynomial", "", "", kPolynomial},
      {"exp_reduce", "", "", kReduce},
      {"exp_usual", "", "", kUsual},
      {"exp", "exp_usual exp_reduce exp_polynomial exp_scaled constant", "", kExp},
      {"exp2_polynomial", "exp_polynomial", "", kExp2Polynomial},
      {"exp2", "exp_usual exp2_polynomial exp_scaled constant", "", kExp2},
      {"log", "", "", kLog},
      {"tanh", "exp_reduce exp_polynomial constant", "", kTanh},
      {"erf", "exp_reduce exp_polynomial constant", "", kErf},
      {"tanh_fast", "constant", "", kTanhFast},
      {"erf_fast", "erf", "", kErfFast},
      {"over_one_plus_exp", "exp",
       "TW_INLINE f32 tw_over_one_plus_exp(f32 a, f32 y) { return a / (1.0f + tw_exp(y)); }", ""},
      {"near_exp2", "exp2", "TW_INLINE f32 tw_near_exp2(f32 x) { return tw_exp2(x); }", ""},
      {"near_reciprocal", "",
       "TW_INLINE f32 tw_near_reciprocal(f32 x) { return x > 0x1p126f ? 0.0f : 1.0f / x; }", ""},
      {"over_one_plus_exp_bf16", "near_exp2 near_reciprocal", kOverOnePlusExpBf16, ""},
      {"one_plus_tanh_bf16", "near_exp2 near_reciprocal", kOnePlusTanhBf16, ""},
      {"one_plus_erf_bf16", "fabs near_exp2 near_reciprocal", kOnePlusErfBf16, ""},
      {"any", "", "", kAny},
      {"quarters", "", "", kQuarters},
      {"quarters_far", "", kQuartersFar, ""},
      {"quarter_turns", "quarters quarters_far/1 any:i32", "", kQuarterTurns},
      {"sin_turned", "", "", kSinTurned},
      {"sin", "quarter_turns sin_turned", "", kSin},
      {"cos", "quarter_turns sin_turned", "", kCos},
      libm("exp_f64", "__builtin_exp"),
      libm("exp2_f64", "__builtin_exp2"),
      libm("log_f64", "__builtin_log"),
      libm("tanh_f64", "__builtin_tanh"),
      libm("erf_f64", "__builtin_erf"),
      libm("tanh_fast_f64", "__builtin_tanh"),
      libm("erf_fast_f64", "__builtin_erf"),
      libm("sin_f64", "__builtin_sin"),
      libm("cos_f64", "__builtin_cos"),
      {"sqrt", "", kSqrtScalar, kSqrtVector},
      {"sqrt_f64", "", kSqrt64Scalar, kSqrt64Vector},
      {"floor", "", "", kFloor},
      {"ceil", "", "", kCeil},
      {"round", "", "", kRound},
  };
}

}  // namespace tw::cpu
