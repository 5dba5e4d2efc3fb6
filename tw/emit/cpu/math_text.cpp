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

// e^r, |r| <= 0.35: the polynomial of Cephes expf.
const char* const kPolynomial = R"(TW_INLINE $V tw_exp_polynomial($V r) {
  $V q = r * 1.9875691500e-4f + 1.3981999507e-3f;
  q = q * r + 8.3334519073e-3f;
  q = q * r + 4.1665795894e-2f;
  q = q * r + 1.6666665459e-1f;
  q = q * r + 5.0000001201e-1f;
  q = q * (r * r) + r;
  return q + 1.0f;
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
const char* const kExp = R"(// e^x, 1 ulp (Cephes polynomial, Cody-Waite reduction)
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

const char* const kExp2 = R"(// 2^x, 1.5 ulp
TW_INLINE $V tw_exp2($V x) {
  const $V high = tw_constant_$Dx$L(129.0f), zero = {};
  const $I gone = x < -151.0f;
  $V c = gone ? zero : x;
  c = high < c ? high : c;
  const $V t = c + 12582912.0f;
  const $V n = t - 12582912.0f;
  const $V r = c - n;
  const $V q = tw_exp_polynomial(r * 0.693147182f + r * -1.90465421e-9f);
  const $V y = tw_exp_scaled(q, t, n);
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

const char* const kTanh = R"(// tanh x, 5 ulp (rational 13/6)
TW_INLINE $V tw_tanh($V x) {
  const $V low = tw_constant_$Dx$L(-7.90531110763549805f);
  const $V high = tw_constant_$Dx$L(7.90531110763549805f);
  $V a = low > x ? low : x;
  a = high < a ? high : a;
  const $V s = a * a;
  $V p = s * -2.76076847742355e-16f + 2.00018790482477e-13f;
  p = p * s - 8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  $V q = s * 1.19825839466702e-06f + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  const $V y = p * a / q;
  const $V size = ($V)(($I)x & 0x7fffffff), one = ($V)((($I)x & ~0x7fffffff) | 0x3f800000);
  const $V r = size > 9.02f ? one : y;  // past the clamp y stays below 1: -inf * (1 + y) is no NaN
  return size < 4e-4f ? x : r;
})";

const char* const kErf = R"(// erf x, 6 ulp (rational 13/8)
TW_INLINE $V tw_erf($V x) {
  const $V low = tw_constant_$Dx$L(-4.0f), high = tw_constant_$Dx$L(4.0f);
  $V a = low > x ? low : x;
  a = high < a ? high : a;
  const $V s = a * a;
  $V p = s * -2.72614225801306e-10f + 2.77068142495902e-08f;
  p = p * s - 2.10102402082508e-06f;
  p = p * s - 5.69250639462346e-05f;
  p = p * s - 7.34990630326855e-04f;
  p = p * s - 2.95459980854025e-03f;
  p = p * s - 1.60960333262415e-02f;
  $V q = s * -1.45660718464996e-05f - 2.13374055278905e-04f;
  q = q * s - 1.68282697438203e-03f;
  q = q * s - 7.37332916720468e-03f;
  q = q * s - 1.42647390514189e-02f;
  const $V y = p * a / q;
  const $V size = ($V)(($I)x & 0x7fffffff), one = ($V)((($I)x & ~0x7fffffff) | 0x3f800000);
  const $V r = size > 4.0f ? one : y;
  return size < 4e-4f ? x * 1.12837917f : r;
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
      {"exp2", "exp_polynomial exp_scaled constant", "", kExp2},
      {"log", "", "", kLog},
      {"tanh", "constant", "", kTanh},
      {"erf", "constant", "", kErf},
      libm("exp_f64", "__builtin_exp"),
      libm("exp2_f64", "__builtin_exp2"),
      libm("log_f64", "__builtin_log"),
      libm("tanh_f64", "__builtin_tanh"),
      libm("erf_f64", "__builtin_erf"),
      {"sqrt", "", kSqrtScalar, kSqrtVector},
      {"sqrt_f64", "", kSqrt64Scalar, kSqrt64Vector},
      {"floor", "", "", kFloor},
      {"ceil", "", "", kCeil},
      {"round", "", "", kRound},
  };
}

}  // namespace tw::cpu
