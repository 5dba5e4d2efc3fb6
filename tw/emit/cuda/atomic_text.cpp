#include <fmt/format.h>

#include "tw/emit/cuda/prelude_cuda.h"

namespace tw::cuda {
namespace {

struct NumberType {
  const char* name;
  const char* ptx;   ///< as add, min and max name it
  const char* bits;  ///< as exch, cas, and, or, xor name it
  char letter;       ///< of an asm constraint
};
constexpr NumberType kNumberTypes[] = {{"i32", "s32", "b32", 'r'}, {"u32", "u32", "b32", 'r'},
                                       {"i64", "s64", "b64", 'l'}, {"u64", "u64", "b64", 'l'},
                                       {"f32", "f32", "b32", 'f'}, {"f64", "f64", "b64", 'd'}};

struct Place {
  std::string name, ptx;
};
/// "relaxed_device" and ".relaxed.gpu", and so on.
std::vector<Place> places() {
  std::vector<Place> all;
  for (const char* order : {"relaxed", "acquire", "release", "acq_rel"}) {
    for (const auto& [scope, ptx] :
         {std::pair{"block", "cta"}, std::pair{"device", "gpu"}, std::pair{"system", "sys"}}) {
      all.push_back({fmt::format("{}_{}", order, scope), fmt::format(".{}.{}", order, ptx)});
    }
  }
  return all;
}

/// One instruction.
std::string direct(const std::string& op, const Place& place, const NumberType& t) {
  const bool plain = op == "add" || op == "min" || op == "max";
  // Sums wrap, so signed 64-bit ones are unsigned: there is no other instruction.
  const std::string type = !plain ? t.bits : op == "add" && t.letter == 'l' ? "u64" : t.ptx;
  // exch and cas of floats move bits: registers of any kind of that width do.
  return fmt::format(R"(__device__ __forceinline__ {0} tw_atomic_{1}_{2}({0}* p, {0} v) {{
  {0} old;
  asm volatile("atom{3}.{1}.{4} %0, [%1], %2;" : "={5}"(old) : "l"(p), "{5}"(v) : "memory");
  return old;
}}
)",
                     t.name, op, place.name, place.ptx, type, t.letter);
}

std::string compare(const Place& place, const NumberType& t) {
  return fmt::format(
      R"(__device__ __forceinline__ {0} tw_atomic_cas_{1}({0}* p, {0} v, {0} expected) {{
  {0} old;
  asm volatile("atom{2}.cas.{3} %0, [%1], %2, %3;"
               : "={4}"(old) : "l"(p), "{4}"(expected), "{4}"(v) : "memory");
  return old;
}}
)",
      t.name, place.name, place.ptx, t.bits, t.letter);
}

/// min and max of floats: what is no number wins, -0 is below +0. Loops until nothing came between.
std::string extreme_of_floats(const std::string& op, const Place& place, const NumberType& t) {
  const bool wide = t.letter == 'd';
  return fmt::format(
      R"(__device__ __forceinline__ {0} tw_atomic_{1}_{2}({0}* p, {0} v) {{
  union {{ {0} value; {3} bits; }} old, next, seen;
  old.value = *(volatile {0}*)p;
  for (;;) {{
    next.value = v;
    if (old.value == v) {{
      next.bits {5}= old.bits;
    }} else if (old.value != old.value || old.value {4} v) {{
      next.value = old.value;
    }}
    seen.bits = tw_atomic_cas_{2}(({3}*)p, next.bits, old.bits);
    if (seen.bits == old.bits) return old.value;
    old.bits = seen.bits;
  }}
}}
)",
      t.name, op, place.name, wide ? "u64" : "u32", op == "min" ? "<" : ">",
      op == "min" ? "|" : "&");
}

/// cas of 8 and 16 bits, by the word that holds them.
std::string narrow_compare(const Place& place, const std::string& type) {
  return fmt::format(
      R"(__device__ __forceinline__ {0} tw_atomic_cas_{1}({0}* p, {0} v, {0} expected) {{
  u32* word = (u32*)((u64)p & ~3ul);
  const u32 shift = (u32)((u64)p & 3) * 8, mask = (u32)({0})~0 << shift;
  u32 old = *(volatile u32*)word;
  for (;;) {{
    if (({0})(old >> shift) != expected) {{
      const u32 seen = tw_atomic_cas_{1}(word, old, old);
      if (seen == old) return ({0})(old >> shift);
      old = seen;
      continue;
    }}
    const u32 seen = tw_atomic_cas_{1}(word, (old & ~mask) | ((u32)v << shift), old);
    if (seen == old) return expected;
    old = seen;
  }}
}}
)",
      type, place.name);
}

std::string cuda_text(const std::string& op, const Place& place) {
  const bool bitwise = op == "and" || op == "or" || op == "xor";
  std::string text;
  for (const NumberType& t : kNumberTypes) {
    const bool floats = t.letter == 'f' || t.letter == 'd';
    if (bitwise && floats) continue;
    if (op == "cas") {
      if (!floats) text += compare(place, t);
    } else if (floats && (op == "min" || op == "max")) {
      text += extreme_of_floats(op, place, t);
    } else {
      text += direct(op, place, t);
    }
  }
  if (op == "cas") text += narrow_compare(place, "u8") + narrow_compare(place, "u16");
  return text;
}

const char* const kEmulatedTypes = R"(inline const char* tw_emu_type(u8*) { return "u8"; }
inline const char* tw_emu_type(u16*) { return "u16"; }
inline const char* tw_emu_type(i32*) { return "i32"; }
inline const char* tw_emu_type(u32*) { return "u32"; }
inline const char* tw_emu_type(i64*) { return "i64"; }
inline const char* tw_emu_type(u64*) { return "u64"; }
inline const char* tw_emu_type(f32*) { return "f32"; }
inline const char* tw_emu_type(f64*) { return "f64"; })";

/// What is given to the function need not have the element's type: 1 for an i64.
const char* const kSame = "template <class T> struct TwSame { typedef T type; };";

std::string emulated_text(const std::string& op, const Place& place) {
  const bool compares = op == "cas";
  return fmt::format(
      R"(template <class T> T tw_atomic_{0}_{1}(T* p, typename TwSame<T>::type v, {2}TW_LINE) {{
  T old;
  tw_emu_atomic("tw_atomic_{0}_{1}", tw_emu_type(p), p, &v, {3}, &old, line);
  return old;
}})",
      op, place.name, compares ? "typename TwSame<T>::type expected, " : "",
      compares ? "&expected" : "0");
}

}  // namespace

std::vector<ThreadFunction> atomic_functions() {
  std::vector<ThreadFunction> all = {{"tw_emu_type", "", "", kEmulatedTypes},
                                     {"TwSame", "", "", kSame}};
  for (const Place& place : places()) {
    // cas first: min and max of floats call it.
    for (const char* op : {"cas", "add", "min", "max", "and", "or", "xor", "exch"}) {
      const bool loops = std::string(op) == "min" || std::string(op) == "max";
      all.push_back(
          {.name = fmt::format("tw_atomic_{}_{}", op, place.name),
           .uses = "tw_emu_type TwSame" + (loops ? " tw_atomic_cas_" + place.name : std::string()),
           .cuda = cuda_text(op, place),
           .emulated = emulated_text(op, place)});
    }
  }
  return all;
}

}  // namespace tw::cuda
