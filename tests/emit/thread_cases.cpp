#include "tests/emit/thread_cases.h"

#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numbers>

#include "tw/check/bound.h"
#include "tw/ir/program.h"
#include "tw/num/codec.h"

namespace tw::test {
namespace {

using Codes = std::vector<uint64_t>;

uint64_t code_of(DType t, double x) {
  return t == f64   ? std::bit_cast<uint64_t>(x)
         : t == f32 ? std::bit_cast<uint32_t>(static_cast<float>(x))
                    : encode(t, x);
}
double value_of(DType t, uint64_t b) {
  return t == f64   ? std::bit_cast<double>(b)
         : t == f32 ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(b)))
                    : decode(t, b);
}

/// Equal, or both no number; zeros have signs.
bool same(DType t, uint64_t a, uint64_t b) {
  const double x = value_of(t, a), y = value_of(t, b);
  return std::isnan(x) ? std::isnan(y) : a == b;
}

std::string code_type(DType t) {
  return is_float(t) && t != f32 && t != f64 ? name(cpu::unsigned_of_bytes(bytes(t)))
         : t == b1                           ? "bool"
                                             : name(cpu::register_type(t));
}

uint64_t low_bits(DType t, uint64_t b) { return bits(t) == 64 ? b : b & ((1ull << bits(t)) - 1); }

/// Values of a type of 32 or 64 bits at which functions change what they do, and a sweep.
Codes floats(DType t) {
  Codes list;
  const auto add = [&](double x) {
    for (const double y : {x, -x}) list.push_back(code_of(t, y));
  };
  for (const double x : {0.0,
                         HUGE_VAL,
                         std::nan(""),
                         1.0,
                         0.5,
                         2.5,
                         1.5,
                         87.0,
                         88.8,
                         89.5,
                         103.9,
                         104.1,
                         125.0,
                         126.0,
                         127.99,
                         128.0,
                         149.0,
                         150.1,
                         709.8,
                         745.2,
                         1074.5,
                         0.6,
                         0.85,
                         9.02,
                         8388607.5,
                         8388608.0,
                         4503599627370495.5,
                         2147483520.0,
                         2147483648.0,
                         4294967040.0,
                         4294967296.0,
                         9223371487098961920.0,
                         9223372036854775808.0,
                         18446742974197923840.0,
                         18446744073709551616.0,
                         127.5,
                         128.5,
                         255.5,
                         256.0,
                         32767.5,
                         65535.5,
                         65504.0,
                         65519.9,
                         65520.0,
                         448.0,
                         464.0,
                         464.5,
                         57344.0,
                         61440.0,
                         0x1p-126,
                         0x1p-149,
                         0x1p-25,
                         0x1p-24})
    add(x);
  const int lowest = t == f32 ? -149 : -1074, highest = t == f32 ? 127 : 1023;
  const int steps = t == f32 ? 61 : 7;
  for (int e = lowest; e <= highest; ++e) {
    for (int k = 0; k < steps; ++k) add(std::ldexp(1 + static_cast<double>(k) / steps, e));
  }
  for (int k = 0; k < 40000; ++k) add(k * 3.1e-3);
  for (int k = 1; k < 9000; k += 7) add(k * std::numbers::pi / 2);
  uint64_t random = 1;
  for (int k = 0; k < 20000; ++k) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    list.push_back(t == f32 ? random >> 32 : random);
  }
  return list;
}

/// Both lists of all pairs.
std::vector<Codes> pairs(const Codes& list) {
  std::vector<Codes> both(2);
  for (const uint64_t a : list) {
    for (const uint64_t b : list) both[0].push_back(a), both[1].push_back(b);
  }
  return both;
}

struct Real {
  const char* name;
  Opcode code;
  long double (*reference)(long double);
};
const Real kReals[] = {
    {"exp", Opcode::exp, [](long double x) { return std::exp(x); }},
    {"exp2", Opcode::exp2, [](long double x) { return std::exp2(x); }},
    {"log", Opcode::log, [](long double x) { return std::log(x); }},
    {"sin", Opcode::sin, [](long double x) { return std::sin(x); }},
    {"cos", Opcode::cos, [](long double x) { return std::cos(x); }},
    {"tanh", Opcode::tanh, [](long double x) { return std::tanh(x); }},
    {"erf", Opcode::erf, [](long double x) { return std::erf(x); }},
    {"tanh_fast", Opcode::tanh_fast, [](long double x) { return std::tanh(x); }},
    {"erf_fast", Opcode::erf_fast, [](long double x) { return std::erf(x); }},
    {"sqrt", Opcode::sqrt, [](long double x) { return std::sqrt(x); }},
    {"floor", Opcode::floor, [](long double x) { return std::floor(x); }},
    {"ceil", Opcode::ceil, [](long double x) { return std::ceil(x); }},
    {"round", Opcode::round, [](long double x) { return std::nearbyint(x); }},
};

bool within(const Real& f, DType t, uint64_t in, uint64_t out) {
  const double got = value_of(t, out);
  const long double want = f.reference(value_of(t, in));
  const double nearest = t == f32 ? static_cast<float>(want) : static_cast<double>(want);
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got);
  if (std::isinf(nearest) || std::isinf(got)) return got == nearest;
  if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want);
  const double stated = stated_ulps(f.code, t), bound = stated > 0 ? stated : 0.5;
  return std::fabs(got - want) <= bound * check::ulp(t, nearest);
}

ThreadGroup math_group(DType t) {
  ThreadGroup g{fmt::format("math_{}", name(t)), {}};
  for (const Real& f : kReals) {
    const bool exact = f.code == Opcode::floor || f.code == Opcode::ceil || f.code == Opcode::round;
    g.cases.push_back(
        {fmt::format("{}_{}", f.name, name(t)),
         std::string(f.name) + (t == f64 && !exact ? "_f64" : ""),
         t,
         {name(t)},
         name(t),
         "",
         {floats(t)},
         [&f, t](const Codes& in, uint64_t out) { return within(f, t, in[0], out); }});
  }
  return g;
}

/// a < b with -0 below +0.
bool below(double a, double b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }

double extreme(bool largest, bool numbers, double a, double b) {
  if (std::isnan(a)) return numbers ? b : a;
  if (std::isnan(b)) return numbers ? a : b;
  return below(a, b) == largest ? b : a;
}

ThreadGroup extremes_group() {
  ThreadGroup g{"extremes", {}};
  for (const DType t : {f32, f64}) {
    Codes list;
    for (const double x : {0.0, 1.0, 2.5, HUGE_VAL, std::nan(""), 0x1p-140, 1e30}) {
      for (const double y : {x, -x}) list.push_back(code_of(t, y));
    }
    for (const std::string f : {"max", "min", "max_num", "min_num"}) {
      const bool largest = f[1] == 'a', numbers = f.size() > 3;
      ThreadCase c{f + "_" + name(t), f, t, {name(t), name(t)}, name(t), "", pairs(list), {}};
      c.right = [=](const Codes& in, uint64_t out) {
        const double want = extreme(largest, numbers, value_of(t, in[0]), value_of(t, in[1]));
        return same(t, code_of(t, want), out);
      };
      g.cases.push_back(c);
    }
    ThreadCase c{std::string("fabs_") + name(t), "fabs", t, {name(t)}, name(t), "", {list}, {}};
    c.right = [=](const Codes& in, uint64_t out) {
      return same(t, code_of(t, std::fabs(value_of(t, in[0]))), out);
    };
    g.cases.push_back(c);
  }
  return g;
}

__extension__ typedef __int128 Wide;

/// What an integer operation gives, before it wraps.
Wide whole(const std::string& f, DType t, Wide a, Wide b) {
  const bool out = b < 0 || b >= bits(t);
  if (f == "add") return a + b;
  if (f == "sub") return a - b;
  if (f == "mul") return static_cast<Wide>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  if (f.starts_with("div_")) return b == 0 ? 0 : a / b;
  if (f.starts_with("rem_")) return b == 0 ? 0 : a % b;
  if (f == "shl")
    return out ? 0 : static_cast<Wide>(static_cast<uint64_t>(a) << static_cast<int>(b));
  if (f.starts_with("shr_")) return out ? (a < 0 ? -1 : 0) : a >> static_cast<int>(b);
  if (f == "lesser") return a < b ? a : b;
  return a > b ? a : b;  // greater
}

Wide integer(DType t, uint64_t code) {
  if (!is_signed_int(t)) return low_bits(t, code);
  const int unused = 64 - static_cast<int>(bits(t));
  return static_cast<int64_t>(code << unused) >> unused;
}

ThreadGroup integers_group(DType t) {
  ThreadGroup g{fmt::format("integers_{}", name(t)), {}};
  Codes list;
  for (const int64_t x : {0,  1,  2,   3,   7,   8,   15,    16,    31,         32,
                          63, 64, 100, 127, 128, 255, 32767, 65535, 0x7fffffff, 0x12345678}) {
    list.push_back(low_bits(t, static_cast<uint64_t>(x)));
    list.push_back(low_bits(t, static_cast<uint64_t>(-x)));
  }
  list.push_back(1ull << (bits(t) - 1));
  list.push_back((1ull << (bits(t) - 1)) - 1);
  const std::string sign = is_signed_int(t) ? "signed" : "unsigned";
  for (const std::string& f :
       {std::string("add"), std::string("sub"), std::string("mul"), "div_" + sign, "rem_" + sign,
        std::string("shl"), "shr_" + sign, std::string("lesser"), std::string("greater")}) {
    ThreadCase c{f + "_" + name(t), f, t, {name(t), name(t)}, name(t), "", pairs(list), {}};
    c.right = [=](const Codes& in, uint64_t out) {
      const auto want = static_cast<uint64_t>(whole(f, t, integer(t, in[0]), integer(t, in[1])));
      return low_bits(t, want) == low_bits(t, out);
    };
    g.cases.push_back(c);
  }
  if (is_signed_int(t)) {
    ThreadCase c{
        std::string("magnitude_") + name(t), "magnitude", t, {name(t)}, name(t), "", {list}, {}};
    c.right = [=](const Codes& in, uint64_t out) {
      const Wide x = integer(t, in[0]);
      return low_bits(t, static_cast<uint64_t>(x < 0 ? -x : x)) == low_bits(t, out);
    };
    g.cases.push_back(c);
  }
  return g;
}

/// All elements of a format of 16 bits or less.
Codes all_codes(DType t) {
  Codes list;
  for (uint64_t b = 0; b < 1ull << bits(t); ++b) list.push_back(b);
  return list;
}

ThreadGroup formats_group() {
  ThreadGroup g{"formats", {}};
  for (const DType t : {f16, bf16, e5m2, e4m3, e3m2, e2m3, e2m1, e8m0}) {
    const std::string n = name(t);
    ThreadCase unpack{
        "unpack_" + n, "unpack_" + n, t, {code_type(t)}, "f32", "", {all_codes(t)}, {}};
    unpack.right = [=](const Codes& in, uint64_t out) {
      return same(f32, code_of(f32, decode(t, in[0])), out);
    };
    ThreadCase pack{"pack_" + n, "pack_" + n, t, {"f32"}, code_type(t), "", {{}}, {}};
    for (const uint64_t b : all_codes(t)) pack.arguments[0].push_back(code_of(f32, decode(t, b)));
    pack.right = [=](const Codes& in, uint64_t out) {
      return same(t, encode(t, value_of(f32, in[0])), out);
    };
    ThreadCase round{"round_" + n, "round_" + n, t, {"f32"}, "f32", "", {floats(f32)}, {}};
    for (const uint64_t b : all_codes(t)) {  // neighbours of ties too
      const uint64_t x = code_of(f32, decode(t, b)), half = 1u << (22 - info(t).mantissa_bits);
      for (const uint64_t y : {x, x + half - 1, x + half, x + half + 1})
        round.arguments[0].push_back(y & 0xffffffff);
    }
    round.right = [=](const Codes& in, uint64_t out) {
      return same(f32, code_of(f32, decode(t, encode(t, value_of(f32, in[0])))), out);
    };
    for (ThreadCase* c : {&unpack, &pack, &round}) g.cases.push_back(*c);
  }
  return g;
}

/// Any rounding, through f64.
ThreadGroup roundings_group() {
  ThreadGroup g{"roundings", {}};
  for (const DType t : {f32, f16, bf16, e5m2, e4m3, e3m2, e2m1, e8m0}) {
    for (const Rounding r : {Rounding::RN, Rounding::RZ, Rounding::RU, Rounding::SR}) {
      for (const bool saturate : {false, true}) {
        const DTypeInfo& d = info(t);
        const std::string form = t == e8m0      ? "round_to_power"
                                 : is_packed(t) ? "round_to_number"
                                                : "round_to";
        const std::string past = is_packed(t)      ? fmt::format("{:a}", largest(t))
                                 : has_infinity(t) ? "__builtin_inf()"
                                                   : "__builtin_nan(\"\")";
        constexpr uint32_t kRandom = 0x5a5a1234;
        ThreadCase c{fmt::format("{}_{}_{}_{:d}", form, name(t), static_cast<int>(r), saturate),
                     form,
                     f64,
                     {"f64"},
                     "f64",
                     fmt::format(", {}, {}, {:a}, {}, {}, {}, {}u", d.mantissa_bits,
                                 2 - (1 << (d.exponent_bits - 1)), largest(t), past,
                                 static_cast<int>(r), saturate, kRandom),
                     {floats(f64)},
                     {}};
        c.right = [=](const Codes& in, uint64_t out) {
          const double want = decode(t, encode(t, value_of(f64, in[0]), r, saturate, kRandom));
          return same(f64, code_of(f64, want), out);
        };
        g.cases.push_back(c);
      }
    }
  }
  return g;
}

ThreadGroup to_integer_group() {
  ThreadGroup g{"to_integer", {}};
  for (const DType to : {i8, i16, i32, i64, u8, u16, u32, u64, i1, i2, i3,
                         i4, i5,  i6,  i7,  u1, u2,  u3,  u4,  u5, u6, u7}) {
    for (const DType from : {f32, f64}) {
      ThreadCase c{fmt::format("to_{}_{}", name(to), name(from)),
                   std::string("to_") + name(to),
                   from,
                   {name(from)},
                   name(cpu::register_type(to)),
                   "",
                   {floats(from)},
                   {}};
      c.right = [=](const Codes& in, uint64_t out) {
        const uint64_t want = encode_int(to, value_of(from, in[0]));
        const DType held = cpu::register_type(to);
        return low_bits(held, static_cast<uint64_t>(integer(to, want))) == low_bits(held, out);
      };
      g.cases.push_back(c);
    }
  }
  return g;
}

ThreadGroup others_group() {
  ThreadGroup g{"others", {}};
  const Codes words{0, 1, 7, 0xffffffff, 0x123456789abcdef, 1ull << 63, ~0ull};
  ThreadCase random{"philox", "philox", u64, {"u64", "u64"}, "u32", ", 5", pairs(words), {}};
  random.right = [](const Codes& in, uint64_t out) {
    return philox(in[0], in[1], 5).word[0] == out;
  };
  g.cases.push_back(random);
  for (const DType t : {i1, i2, i3, i4, i5, i6, i7, u1, u2, u3, u4, u5, u6, u7}) {
    const std::string n = name(t), held = name(cpu::register_type(t));
    ThreadCase unpack{"unpack_" + n, "unpack_" + n, t, {"u8"}, held, "", {all_codes(t)}, {}};
    unpack.right = [=](const Codes& in, uint64_t out) {
      return low_bits(u8, static_cast<uint64_t>(integer(t, in[0]))) == low_bits(u8, out);
    };
    ThreadCase pack{"pack_" + n, "pack_" + n, t, {held}, "u8", "", {all_codes(u8)}, {}};
    pack.right = [=](const Codes& in, uint64_t out) { return low_bits(t, in[0]) == out; };
    g.cases.push_back(unpack);
    g.cases.push_back(pack);
  }
  for (const DType t : {i64, u64}) {
    ThreadCase c{std::string("sticky_") + name(t),
                 t == i64 ? "sticky_signed" : "sticky_unsigned",
                 t,
                 {name(t)},
                 "f64",
                 "",
                 {words},
                 {}};
    for (int k = 50; k < 64; ++k) c.arguments[0].push_back((1ull << k) + 1);
    c.right = [=](const Codes& in, uint64_t out) {
      // Twice rounded, once to 53 bits by this, the value is that of one rounding.
      const double x = value_of(f64, out);
      const uint64_t once =
          t == i64 ? encode_signed(f32, static_cast<int64_t>(in[0])) : encode_unsigned(f32, in[0]);
      return encode(f32, x) == once;
    };
    g.cases.push_back(c);
  }
  return g;
}

/// The call with operands read from 8-byte words.
std::string call_text(const ThreadCase& c, cpu::Prelude& prelude) {
  std::string f = prelude.use(c.function, c.dtype, 1);
  if (c.function.starts_with("sticky_")) f = "tw_sticky";
  std::string list;
  for (size_t k = 0; k < c.operands.size(); ++k)
    list += fmt::format("{}*(const {}*)({} + i)", k ? ", " : "", c.operands[k], k ? "b" : "a");
  return fmt::format("*({}*)(out + i) = {}({}{});", c.result, f, list, c.more);
}

/// The text of a case's function and what it calls, after what every text starts with.
std::string function_text(const ThreadCase& c, cpu::Thread kind) {
  cpu::Prelude with(cpu::thread_machine(kind)), without(cpu::thread_machine(kind));
  with.use(c.function, c.dtype, 1);
  return with.text("").substr(without.text("").size());
}

}  // namespace

bool only_on_gpu(const ThreadCase& c) {
  std::string cuda = function_text(c, cpu::Thread::cuda);
  const std::pair<std::string, std::string> alike[] = {{"__fmaf_rn", "__builtin_fmaf"},
                                                       {"static __device__", "static"}};
  for (const auto& [word, host] : alike) {
    for (size_t at; (at = cuda.find(word)) != std::string::npos;)
      cuda.replace(at, word.size(), host);
  }
  return cuda != function_text(c, cpu::Thread::emulated);
}

std::vector<ThreadGroup> thread_groups() {
  std::vector<ThreadGroup> all{math_group(f32), math_group(f64),   extremes_group(),
                               formats_group(), roundings_group(), to_integer_group(),
                               others_group(),  fused_group()};
  for (const DType t : {i8, i16, i32, i64, u8, u16, u32, u64}) all.push_back(integers_group(t));
  return all;
}

std::string thread_text(const ThreadGroup& group, cpu::Thread kind) {
  cpu::Prelude prelude(cpu::thread_machine(kind));
  const bool cuda = kind == cpu::Thread::cuda;
  std::string kernels;
  for (const ThreadCase& c : group.cases) {
    const std::string call = call_text(c, prelude);
    const char* loop = cuda ? "for (i64 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += "
                              "gridDim.x * blockDim.x)"
                            : "for (i64 i = 0; i < n; ++i)";
    kernels += fmt::format(
        "\nextern \"C\" {}void {}(const u64* a, const u64* b, u64* out, i64 n) {{\n  {} {}\n}}\n",
        cuda ? "__global__ " : "", c.name, loop, call);
  }
  return prelude.text("") + kernels;
}

std::string wrong_results(const ThreadCase& c, const std::vector<uint64_t>& out) {
  size_t wrong = 0;
  std::string first;
  for (size_t i = 0; i < out.size(); ++i) {
    Codes in;
    for (const Codes& list : c.arguments) in.push_back(list[i]);
    if (c.right(in, out[i])) continue;
    if (wrong++ == 0) {
      first = fmt::format("{}(", c.name);
      for (const uint64_t b : in) first += fmt::format("{:#x} ", b);
      first += fmt::format(") gave {:#x}", out[i]);
    }
  }
  return wrong == 0 ? "" : fmt::format("{} of {} wrong: {}", wrong, out.size(), first);
}

}  // namespace tw::test
