#include "tw/emit/cpu/prelude.h"

#include <fmt/format.h>
#include <functional>

#include "tw/base/error.h"
#include "tw/emit/cpu/writer.h"

namespace tw::cpu {
namespace {

const char* const kTypes = R"(typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long i64;
typedef unsigned long u64;
typedef float f32;
typedef double f64;
)";

const char* const kInline =
    "#define TW_INLINE static inline __attribute__((always_inline, unused))\n";
// CUDA has functions min and max of its own, and not these builtins.
const char* const kInlineCuda = R"(#define TW_INLINE static __device__ __forceinline__
#define min tw_least_index
#define max tw_most_index
#define __builtin_inff() __builtin_bit_cast(f32, 0x7f800000)
#define __builtin_inf() __builtin_bit_cast(f64, 0x7ff0000000000000)
#define __builtin_nanf(text) __builtin_bit_cast(f32, 0x7fc00000)
#define __builtin_nan(text) __builtin_bit_cast(f64, 0x7ff8000000000000)
#define __builtin_memset memset
)";
const char* const kIndexText = R"(TW_INLINE i64 min(i64 a, i64 b) { return a < b ? a : b; }
TW_INLINE i64 max(i64 a, i64 b) { return a > b ? a : b; }
TW_INLINE i64 floordiv(i64 a, i64 b) {
  return b == 0 ? 0 : a / b - (a % b != 0 && (a ^ b) < 0);
}
TW_INLINE i64 mod(i64 a, i64 b) { return b == 0 ? 0 : a - floordiv(a, b) * b; }
TW_INLINE i64 cdiv(i64 a, i64 b) { return floordiv(a + b - 1, b); }
)";

const char* const kLaneOfVector = "TW_INLINE $V tw_$F($V x) { return tw_$F(x - ($X){})[0]; }";

std::map<std::string, PreludeFunction> make_table() {
  std::map<std::string, PreludeFunction> table;
  for (const auto& list :
       {arithmetic_functions(), math_functions(), memory_functions(), format_functions()}) {
    for (const PreludeFunction& f : list) table[f.name] = f;
  }
  return table;
}

const PreludeFunction& find(const std::string& name) {
  static const std::map<std::string, PreludeFunction> table = make_table();
  const auto it = table.find(name);
  if (it == table.end()) throw InternalError("the prelude has no function '" + name + "'");
  return it->second;
}

std::string numbers(int from, int to) {
  std::string list = std::to_string(from);
  for (int i = from + 1; i < to; ++i) list += fmt::format(", {}", i);
  return list;
}

/// The letter of an inline-asm constraint for a vector register.
const char* register_letter(const std::string& isa) {
  return isa == "avx512" ? "v" : isa == "neon" ? "w" : "x";
}

std::string element(DType t) { return t == b1 ? "bool" : name(t); }

}  // namespace

DType register_type(DType t) {
  if (is_float(t)) return bytes(t) < 4 ? f32 : t;
  return !is_packed(t) ? t : is_signed_int(t) ? i8 : u8;
}

DType signed_of_bytes(int64_t bytes) {
  return bytes == 1 ? i8 : bytes == 2 ? i16 : bytes == 4 ? i32 : i64;
}

DType unsigned_of_bytes(int64_t bytes) {
  return bytes == 1 ? u8 : bytes == 2 ? u16 : bytes == 4 ? u32 : u64;
}

std::string Prelude::type(DType t, int lanes) {
  if (lanes == 1) return element(t);
  types_.insert({t, lanes});
  return fmt::format("{}x{}", name(t), lanes);
}

std::string Prelude::unaligned(DType t, int lanes) {
  if (lanes == 1) return element(t);
  unaligned_.insert({t, lanes});
  return fmt::format("{}x{}_at", name(t), lanes);
}

std::string Prelude::use(const std::string& wish, DType t, int lanes) {
  constexpr int64_t kLeastStream = 16;  // bytes of the shortest store around the caches
  const bool stays = wish == "stream" && (!has_stream() || lanes * bytes(t) < kLeastStream);
  const std::string function = stays ? "store" : wish;
  streamed_ = streamed_ || function == "stream";
  const std::string key = fmt::format("{}:{}:{}", function, name(t), lanes);
  if (!used_.insert(key).second) return call_name(function, t, lanes);
  if (const auto packed = packed_function(*this, function, t, lanes)) {
    use_all(packed->uses, t, lanes);
    functions_.push_back(instance(function, packed->scalar, t, lanes));
    return call_name(function, t, lanes);
  }
  const PreludeFunction& f = find(function);
  const bool lane_of_vector = lanes == 1 && f.scalar.empty();
  const std::string pattern = lane_of_vector                   ? kLaneOfVector
                              : lanes > 1 && !f.vector.empty() ? f.vector
                                                               : f.scalar;
  if (function == "extend") type(i32, lanes), type(i64, 2);
  if (function == "unpack_f16") type(i16, 8), type(i16, 16);
  if (function.starts_with("spread_")) type(f32, 2), type(f32, 4);
  const auto builtin = builtin_function(*machine_, function, t, lanes);
  if (lane_of_vector && for_thread() && !builtin)
    throw InternalError(fmt::format("'{}' of {} has no text for one thread", function, name(t)));
  if (builtin) {
    for (const int n : {8, 16}) type(f32, n), type(i32, n);
    vnni_ = vnni_ || builtin->scalar.find("vpdpbusd") != std::string::npos;
    use_all(builtin->uses, t, lanes);
    functions_.push_back(instance(function, builtin->scalar, t, lanes));
    return call_name(function, t, lanes);
  }
  if (lane_of_vector) {
    use(function, t, 4);
  } else {
    use_all(f.uses, t, lanes);
  }
  functions_.push_back(instance(function, pattern, t, lanes));
  return call_name(function, t, lanes);
}

bool Prelude::has_own(const std::string& function, DType t, int lanes) const {
  return builtin_function(*machine_, function, t, lanes).has_value();
}

void Prelude::add(const std::string& key, const std::string& text) {
  if (used_.insert(key).second) functions_.push_back(text);
}

std::string Prelude::call_name(const std::string& function, DType t, int lanes) const {
  const PreludeFunction& f = find(function);
  const std::string& text = f.scalar.empty() ? f.vector : f.scalar;
  const bool suffixed = text.find("tw_" + function + "_$Dx$L(") != std::string::npos;
  return suffixed ? fmt::format("tw_{}_{}x{}", function, name(t), lanes) : "tw_" + function;
}

void Prelude::use_all(std::string_view uses, DType t, int lanes) {
  while (!uses.empty()) {
    const size_t space = uses.find(' ');
    std::string_view one = uses.substr(0, space);
    uses = space == std::string_view::npos ? "" : uses.substr(space + 1);
    DType other = t;
    int n = lanes;
    if (one.ends_with("/1")) {
      n = 1;
      one.remove_suffix(2);
    }
    if (const size_t colon = one.find(':'); colon != std::string_view::npos) {
      other = *dtype_named(one.substr(colon + 1));
      one = one.substr(0, colon);
    }
    use(fill(one, {{"D", name(t)}}), other, n);
  }
}

std::string Prelude::instance(const std::string& function, const std::string& pattern, DType t,
                              int lanes) {
  const DType one = register_type(t);
  const DType value = t == b1 && lanes > 1 ? i32 : one;
  const DType stored = t == b1 ? u8 : one == t ? t : unsigned_of_bytes(bytes(t));
  Fill values{{"F", function}, {"D", name(t)}, {"L", std::to_string(lanes)}};
  const auto add = [&](const char* word, const std::function<std::string()>& text) {
    if (pattern.find(word) != std::string::npos) values.emplace_back(word + 1, text());
  };
  add("$V", [&] { return type(value, lanes); });
  add("$E", [&] { return type(one); });
  add("$I", [&] { return type(signed_of_bytes(bytes(value)), lanes); });
  add("$U", [&] { return type(unsigned_of_bytes(bytes(value)), lanes); });
  add("$f64", [&] { return type(f64, lanes); });
  add("$X", [&] { return type(value, 4); });
  add("$N", [&] { return std::to_string(8 * bytes(value)); });
  add("$H", [&] { return fmt::format("{:#x}", UINT64_MAX >> (65 - 8 * bytes(value))); });
  add("$S", [&] { return type(stored); });
  add("$Q", [&] { return type(stored, lanes); });
  add("$P", [&] { return unaligned(stored, lanes); });
  add("$B", [&] { return type(unsigned_of_bytes(bytes(stored)), lanes); });
  add("$J", [&] {
    const int64_t bits = 8 * lanes * bytes(stored);
    return bits == 128 ? std::string() : std::to_string(bits);
  });
  add("$O", [&] { return type(f32, static_cast<int>(lanes * bytes(stored) / bytes(f32))); });
  add("$Z", [&] { return numbers(0, lanes); });
  add("$G", [&] { return type(value, lanes / 2); });
  add("$Y", [&] { return numbers(0, lanes / 2); });
  add("$T", [&] { return numbers(lanes / 2, lanes); });
  add("$K", [&] { return std::string(register_letter(machine_->isa)); });
  add("$A", [&] { return type(u8, 4 * lanes); });
  add("$M", [&] { return type(i8, 4 * lanes); });
  add("$W", [&] { return type(i16, 2 * lanes); });
  add("$R", [&] { return type(u16, 2 * lanes); });
  add("$inline", [&] { return "static " + placed() + "inline"; });
  add("$fma",
      [&] { return std::string(machine_->isa == "cuda" ? "__fmaf_rn" : "__builtin_fmaf"); });
  add("$C", [&] { return std::string(value == f64 ? "4503599627370496.0" : "8388608.0f"); });
  return fill(pattern, values);
}

std::string Prelude::text(std::string_view abi) const {
  const char* how = machine_->isa == "cuda" ? kInlineCuda : kInline;
  std::string out = fmt::format("{}\n{}\n{}{}\n", kTypes, abi, how, kIndexText);
  if (for_thread()) {
    for (const std::string& f : functions_) out += "\n" + f + "\n";
    return out;
  }
  for (const auto& [t, lanes] : types_) {
    out += fmt::format("typedef {} {}x{} __attribute__((vector_size({})));\n", element(t), name(t),
                       lanes, lanes * bytes(t));
  }
  for (const auto& [t, lanes] : unaligned_) {
    out += fmt::format(
        "typedef {} {}x{}_at __attribute__((vector_size({}), aligned({}), may_alias));\n",
        element(t), name(t), lanes, lanes * bytes(t), bytes(t));
  }
  for (const std::string& f : functions_) out += "\n" + f + "\n";
  return out;
}

}  // namespace tw::cpu
