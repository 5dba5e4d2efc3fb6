#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

#include "tw/ir/program.h"
#include "tw/num/codec.h"

#include "tests/micro/micro.h"

namespace tw::test {

namespace {

using Real = long double;

uint64_t mixed_number(uint64_t i) {
  uint64_t x = (i + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
  return x ^ x >> 32;
}

/// Numbers of every kind: bits like any, a dense range, ends of ranges.
std::vector<double> sample(DType t) {
  std::vector<double> list = {0.0,  -0.0, 1.0,   -1.0,  INFINITY, -INFINITY, NAN,    0.5,
                              -0.5, 1.5,  448.0, 464.0, 465.0,    65504.0,   65520.0};
  const int lowest = t == f32 ? -149 : -1074, highest = t == f32 ? 127 : 1023;
  for (int e = lowest; e <= highest; e += t == f32 ? 1 : 7) {
    for (const double m : {1.0, 1.25, 1.4375, 1.999}) {
      list.push_back(std::ldexp(m, e));
      list.push_back(-std::ldexp(m, e));
    }
  }
  for (int i = -1500; i < 1500; ++i) list.push_back(i / 97.0);
  for (uint64_t i = 0; i < 2000; ++i)
    list.push_back(decode(t, t == f32 ? mixed_number(i) & 0xffffffff : mixed_number(i)));
  if (t == f32) {
    for (double& x : list) x = static_cast<float>(x);
  }
  return list;
}

std::vector<double> without(std::vector<double> list, bool (*unwanted)(double)) {
  std::erase_if(list, unwanted);
  return list;
}

Tensor numbers_of(DType t, const std::vector<double>& list) {
  return tensor_of(t, {static_cast<int64_t>(list.size())},
                   [&](int64_t i) { return list[static_cast<size_t>(i)]; });
}

std::string each(int64_t count, const std::string& statement) {
  return fmt::format("  for (int i = t; i < {}; i += 256) {};\n", count, statement);
}

// ---- one number to one

/// y = f(x) of all x, with what must come out.
MicroKernel unary(const std::string& function, DType t, const Tensor& x, const Tensor& want,
                  const std::string& suffix = "") {
  const std::string name = fmt::format("{}_{}{}", function, tw::name(t), suffix);
  return MicroMaker("numbers", name, {})
      .scalar(function, t)
      .input(x)
      .output(want, {}, MicroResult::How::numbers)
      .make(1, 256, each(x.count(), "x1[i] = tw_" + function + "(x0[i])"));
}

template <class F>
MicroKernel exact_unary(const std::string& function, DType t, F&& f) {
  const std::vector<double> list = sample(t);
  const Tensor x = numbers_of(t, list);
  return unary(function, t, x, tensor_of(t, x.dims(), [&](int64_t i) { return f(get(x, i)); }));
}

/// All codes of a small float.
void add_codes(DType t, std::vector<MicroKernel>& out) {
  // Those of less than a byte have one of their own in registers.
  const DType held = is_packed(t) ? u8 : t;
  const int64_t count = int64_t{1} << bits(t);
  const auto code = [](int64_t i) { return static_cast<uint64_t>(i); };
  const Tensor codes = tensor_of_bits(held, {count}, code);
  const Tensor values = tensor_of(f32, {count}, [&](int64_t i) { return decode(t, code(i)); });
  out.push_back(unary(fmt::format("unpack_{}", name(t)), t, codes, values));
  out.push_back(unary(fmt::format("pack_{}", name(t)), t, values, codes));
  const Tensor x = numbers_of(f32, sample(f32));
  out.push_back(
      unary(fmt::format("round_{}", name(t)), t, x,
            tensor_of(f32, x.dims(), [&](int64_t i) { return decode(t, encode(t, get(x, i))); })));
}

void add_integers(std::vector<MicroKernel>& out) {
  for (const DType to : {i8, i16, i32, i64, u8, u16, u32, u64, i1, i2, i3,
                         i4, i5,  i6,  i7,  u1, u2,  u3,  u4,  u5, u6, u7}) {
    const DType held = is_packed(to) ? (is_signed_int(to) ? i8 : u8) : to;
    for (const DType from : {f32, f64}) {
      const Tensor x = numbers_of(from, sample(from));
      const Tensor want = tensor_of_bits(held, x.dims(), [&](int64_t i) {
        const uint64_t code = encode_int(to, get(x, i));
        const int up = 64 - bits(to);
        const uint64_t wide = is_signed_int(to)
                                  ? static_cast<uint64_t>(static_cast<int64_t>(code << up) >> up)
                                  : code;
        return bits(held) == 64 ? wide : wide & ((1ull << bits(held)) - 1);
      });
      out.push_back(unary(fmt::format("to_{}", name(to)), from, x, want));
    }
  }
  for (const DType t : {i8, i16, i32}) {
    const Tensor x = tensor_of_bits(t, {4096}, [&](int64_t i) {
      return (i == 0 ? 1ull << (bits(t) - 1) : mixed_number(static_cast<uint64_t>(i))) &
             ((1ull << bits(t)) - 1);
    });
    out.push_back(unary("negative", t, x, tensor_of_bits(t, x.dims(), [&](int64_t i) {
                          return (0 - load_bits(t, x.view().data, i)) & ((1ull << bits(t)) - 1);
                        })));
  }
}

// ---- others

double extreme_of(double a, double b, bool most, bool numbers) {
  if (std::isnan(a) || std::isnan(b)) return numbers ? (std::isnan(a) ? b : a) : NAN;
  const bool less = a < b || (a == b && std::signbit(a));
  return less == most ? b : a;
}

void add_extremes(std::vector<MicroKernel>& out) {
  const Tensor x = numbers_of(f32, sample(f32));
  const int64_t count = x.count();
  for (const bool most : {true, false}) {
    for (const bool numbers : {true, false}) {
      const std::string function = std::string(most ? "max" : "min") + (numbers ? "_num" : "");
      MicroMaker m("numbers", function + "_f32", {});
      m.scalar(function, f32).input(x);
      m.output(tensor_of(f32, {2, count},
                         [&](int64_t i) {
                           const int64_t at = i % count;
                           const double other =
                               i < count ? get(x, (at * 7 + 3) % count) : -get(x, at);
                           return extreme_of(get(x, at), other, most, numbers);
                         }),
               {"any two", "x and -x"}, MicroResult::How::numbers);
      out.push_back(m.make(
          1, 256,
          each(count, fmt::format("x1[i] = tw_{0}(x0[i], x0[(i * 7 + 3) % {1}]), x1[{1} + i] "
                                  "= tw_{0}(x0[i], -x0[i])",
                                  function, count))));
    }
  }
}

/// Two or four floats to a word.
MicroKernel narrow_micro(DType t, bool clamped) {
  const int per = static_cast<int>(4 / bytes(t));
  std::vector<double> list = sample(f32);
  list.resize(list.size() / 4 * 4);
  const Tensor x = numbers_of(f32, list);
  const std::string function = clamped ? "narrow_clamped" : "narrow";
  const Tensor want = tensor_of_bits(t, x.dims(), [&](int64_t i) {
    const double v = get(x, i);
    return encode(t, clamped ? std::clamp(v, -largest(t), largest(t)) : v);
  });
  return MicroMaker("numbers", fmt::format("{}_{}", function, name(t)), {})
      .scalar(function, t)
      .input(x)
      .output(want, {}, MicroResult::How::numbers)
      .make(1, 256,
            each(x.count() / per,
                 fmt::format("((u32*)x1)[i] = tw_{}_{}x1(x0 + i * {})", function, name(t), per)));
}

/// The other roundings of casts.
MicroKernel roundings_micro() {
  const Tensor x = numbers_of(f64, sample(f64));
  MicroMaker m("numbers", "round_to", {});
  m.scalar("round_to", f64).input(x);
  std::string body;
  int arg = 1;
  for (const DType t : {f16, bf16, e4m3, e5m2, f32}) {
    for (const Rounding r : {Rounding::RN, Rounding::RZ, Rounding::RU}) {
      const DTypeInfo& d = info(t);
      const Tensor want =
          tensor_of(f64, x.dims(), [&](int64_t i) { return decode(t, encode(t, get(x, i), r)); });
      m.output(want, {fmt::format("{} {}", name(t), static_cast<int>(r))},
               MicroResult::How::numbers);
      body += each(
          x.count(),
          fmt::format("x{}[i] = tw_round_to(x0[i], {}, {}, {:a}, {}, {}, false, 0)", arg++,
                      d.mantissa_bits, 2 - (1 << (d.exponent_bits - 1)), largest(t),
                      t == e4m3 ? "__builtin_nan(\"\")" : "__builtin_inf()", static_cast<int>(r)));
    }
  }
  return m.make(1, 256, body);
}

/// Those of the table for threads.
void add_thread_numbers(std::vector<MicroKernel>& out) {
  const std::vector<double> list = sample(f32);
  const Tensor x = numbers_of(f32, list);
  const Tensor rounded = tensor_of_bits(u32, x.dims(), [&](int64_t i) -> uint64_t {
    const uint64_t bits = load_bits(f32, x.view().data, i);
    return ((bits & 0x7f800000) == 0x7f800000 ? bits : bits + 0x1000) & 0xffffe000;
  });
  out.push_back(MicroMaker("numbers", "tf32", {"tw_tf32"})
                    .input(x)
                    .output(rounded)
                    .make(1, 256, each(x.count(), "x1[i] = tw_tf32(x0[i])")));
  // The parts of a number add up to what 22 bits hold; `odd` is 0, or NaN.
  const auto upper = [&](int64_t i) {
    return decode(f32, load_bits(f32, x.view().data, i) & 0xffffe000);
  };
  const auto rest = [&](int64_t i) -> uint64_t {
    const auto bits = encode(f32, get(x, i) - upper(i));
    return ((bits & 0x7f800000) == 0x7f800000 ? bits : bits + 0x1000) & 0xffffe000;
  };
  out.push_back(
      MicroMaker("numbers", "split_tf32", {"tw_split_tf32"})
          .input(x)
          .output(tensor_of(f32, x.dims(), upper), {}, MicroResult::How::numbers)
          .output(tensor_of_bits(f32, x.dims(), rest), {}, MicroResult::How::numbers)
          .output(tensor_of(f32, x.dims(),
                            [&](int64_t i) { return std::isfinite(get(x, i)) ? 0.0 : NAN; }),
                  {}, MicroResult::How::numbers)
          .make(1, 256, each(x.count(), R"({
    u32 all = ((const u32*)x0)[i], small;
    f32 odd = 0;
    tw_split_tf32(all, small, odd);
    ((u32*)x1)[i] = all;
    ((u32*)x2)[i] = small;
    x3[i] = odd;
  })")));
  std::vector<double> even = list;
  even.resize(list.size() / 2 * 2);
  const Tensor y = numbers_of(f32, even);
  const Tensor pairs = tensor_of_bits(bf16, y.dims(), [&](int64_t i) -> uint64_t {
    const double v = get(y, i);
    return std::isnan(v) ? 0x7fff : encode(bf16, v);
  });
  out.push_back(
      MicroMaker("numbers", "pack_pair_bf16", {"tw_pack_bf16"})
          .input(y)
          .output(pairs)
          .make(1, 256,
                each(y.count() / 2, "((u32*)x1)[i] = tw_pack_bf16(x0[2 * i], x0[2 * i + 1])")));
}

}  // namespace

std::vector<MicroKernel> number_micros() {
  std::vector<MicroKernel> all;
  for (const DType t : {f16, bf16, e4m3, e5m2, e3m2, e2m3, e2m1, e8m0}) add_codes(t, all);
  add_integers(all);
  add_extremes(all);
  all.push_back(exact_unary("fabs", f32, [](double v) { return std::fabs(v); }));
  for (const DType t : {f32, f64}) {
    all.push_back(exact_unary("floor", t, [](double v) { return std::floor(v); }));
    all.push_back(exact_unary("ceil", t, [](double v) { return std::ceil(v); }));
    all.push_back(exact_unary("round", t, [](double v) { return std::nearbyint(v); }));
  }
  all.push_back(exact_unary(
      "sqrt", f32, [](double v) { return static_cast<double>(std::sqrt(static_cast<float>(v))); }));
  all.push_back(exact_unary("sqrt_f64", f64, [](double v) { return std::sqrt(v); }));
  for (const DType t : {f16, bf16, e4m3}) all.push_back(narrow_micro(t, false));
  all.push_back(narrow_micro(e4m3, true));
  all.push_back(roundings_micro());
  add_thread_numbers(all);
  return all;
}

// ---- functions that are near

namespace {

struct NearFunction {
  std::string function;
  DType type;
  double ulps;
  Real (*exact)(Real);
  bool (*unwanted)(double) = nullptr;
};

bool never(double) { return false; }
/// Results that `ftz` makes zeros.
bool small_powers(double x) { return x < -126 && x > -151; }
bool small_quotients(double x) {
  return (std::fabs(x) < 0x1p-126 && x != 0) || (std::fabs(x) > 0x1p126 && !std::isinf(x));
}

MicroKernel near_micro(const NearFunction& f, bool by_thread) {
  const std::vector<double> list = without(sample(f.type), f.unwanted ? f.unwanted : never);
  const Tensor x = numbers_of(f.type, list);
  MicroResult r{.how = MicroResult::How::ulps, .ulps = f.ulps};
  for (const double v : list) r.exact.push_back(f.exact(v));
  MicroMaker m("functions", by_thread ? f.function : fmt::format("{}_{}", f.function, name(f.type)),
               {});
  if (!by_thread) m.scalar(f.function, f.type);
  if (by_thread) m = MicroMaker("functions", f.function, {"tw_" + f.function});
  return m.input(x)
      .output(std::move(r), f.type, x.dims())
      .make(1, 256, each(x.count(), "x1[i] = tw_" + f.function + "(x0[i])"));
}

/// a / (1 + e^y).
MicroKernel logistic_micro() {
  const Tensor y = tensor_of(f32, {4000}, [](int64_t i) {
    return static_cast<float>(static_cast<double>(i) * 0.045 - 95);
  });
  const Tensor a = tensor_of(f32, {4000}, [](int64_t i) {
    return static_cast<float>(static_cast<double>(i * 37 % 401) / 8 - 25.0625);
  });
  constexpr double kStated = 2.7;
  MicroResult r{.how = MicroResult::How::ulps, .ulps = kStated};
  for (int64_t i = 0; i < y.count(); ++i)
    r.exact.push_back(Real{get(a, i)} / (1 + std::exp(Real{get(y, i)})));
  return MicroMaker("functions", "over_one_plus_exp_f32", {})
      .scalar("over_one_plus_exp", f32)
      .input(a)
      .input(y)
      .output(std::move(r), f32, y.dims())
      .make(1, 256, each(y.count(), "x2[i] = tw_over_one_plus_exp(x0[i], x1[i])"));
}

Real exp_of(Real x) { return std::exp(x); }
Real exp2_of(Real x) { return std::exp2(x); }
Real log_of(Real x) { return std::log(x); }
Real sin_of(Real x) { return std::sin(x); }
Real cos_of(Real x) { return std::cos(x); }
Real tanh_of(Real x) { return std::tanh(x); }
Real erf_of(Real x) { return std::erf(x); }
Real reciprocal_of(Real x) { return 1 / x; }

}  // namespace

std::vector<MicroKernel> function_micros() {
  const std::pair<Opcode, Real (*)(Real)> stated[] = {
      {Opcode::exp, exp_of}, {Opcode::exp2, exp2_of},      {Opcode::log, log_of},
      {Opcode::sin, sin_of}, {Opcode::cos, cos_of},        {Opcode::tanh, tanh_of},
      {Opcode::erf, erf_of}, {Opcode::tanh_fast, tanh_of}, {Opcode::erf_fast, erf_of}};
  std::vector<MicroKernel> all;
  for (const auto& [code, exact] : stated) {
    const std::string function = info(code).name;
    all.push_back(near_micro({function, f32, stated_ulps(code, f32), exact}, false));
    all.push_back(near_micro({function + "_f64", f64, stated_ulps(code, f64), exact}, false));
  }
  // What PTX says of ex2.approx and rcp.approx.
  constexpr double kOfExp2 = 2, kOfReciprocal = 1;
  all.push_back(near_micro({"near_exp2", f32, kOfExp2, exp2_of, small_powers}, false));
  all.push_back(
      near_micro({"near_reciprocal", f32, kOfReciprocal, reciprocal_of, small_quotients}, false));
  all.push_back(near_micro({"exp2_approx", f32, kOfExp2, exp2_of, small_powers}, true));
  all.push_back(logistic_micro());
  return all;
}

}  // namespace tw::test
