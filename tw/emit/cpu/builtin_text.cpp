#include <fmt/format.h>

#include "tw/emit/cpu/prelude.h"

namespace tw::cpu {
namespace {

// Functions for which vector extensions have no text of one instruction. Every one has a portable
// form in the other tables; `types` lists what it serves, of `lanes` lanes.
constexpr int kWhole = 0;  // lanes of one register or more, from 16 bytes on
struct Builtin {
  const char* isa;
  const char* name;
  std::vector<DType> types;
  int lanes;
  const char* text;
};

const char* const kMaskBits = R"(  const u32 upto = (1u << min(max(last, 0), $L)) - 1;
  const u32 mask = upto & ~((1u << min(max(first, 0), $L)) - 1);
)";

const Builtin kBuiltins[] = {
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

}  // namespace

std::string builtin_text(const std::string& isa, const std::string& name, DType t, int lanes) {
  for (const Builtin& b : kBuiltins) {
    const bool fits = b.lanes == kWhole ? lanes * bytes(t) >= 16 : lanes == b.lanes;
    if (isa != b.isa || name != b.name || !fits) continue;
    for (const DType served : b.types) {
      if (served != t) continue;
      std::string text = b.text;
      if (const size_t at = text.find("$mask"); at != std::string::npos) {
        text.replace(at, 5, kMaskBits);
      }
      return text;
    }
  }
  return "";
}

}  // namespace tw::cpu
