#include "tw/emit/cpu/prelude.h"

namespace tw::cpu {

// A stored element becomes a value by tw_get and back by tw_put; lanes by tw_unpack and tw_pack.
// "part" functions touch only the lanes [first, last) and never the memory of the others.
std::vector<PreludeFunction> memory_functions() {
  return {
      {"load", "unpack_$D", "TW_INLINE $E tw_load_$Dx$L(const $S* p) { return tw_unpack_$D(*p); }",
       "TW_INLINE $V tw_load_$Dx$L(const $S* p) { return tw_unpack_$D(*(const $P*)p); }"},
      {"store", "pack_$D", "TW_INLINE void tw_store_$Dx$L($S* p, $E v) { *p = tw_pack_$D(v); }",
       "TW_INLINE void tw_store_$Dx$L($S* p, $V v) { *($P*)p = tw_pack_$D(v); }"},
      // What a place inside a tile, which is far smaller, is compared with.
      {"clamp", "",
       "TW_INLINE int tw_clamp(i64 n) "
       "{ return n < -0x40000000 ? -0x40000000 : n > 0x40000000 ? 0x40000000 : (int)n; }",
       ""},
      {"clamp_high", "",
       "TW_INLINE int tw_clamp_high(i64 n) { return n > 0x40000000 ? 0x40000000 : (int)n; }", ""},
      // A word of neighbours, rounded first.
      {"narrow", "round_$D pack_$D",
       "TW_INLINE u32 tw_narrow_$Dx$L(const f32* x) {\n  u32 word = 0;\n"
       "  for (int k = 0; k < 4 / (int)sizeof($S); ++k)\n"
       "    word |= (u32)tw_pack_$D(tw_round_$D(x[k])) << 8 * (int)sizeof($S) * k;\n"
       "  return word;\n}",
       ""},
      // The same of numbers kept within the largest of e4m3.
      {"narrow_clamped", "narrow max:f32 min:f32",
       "TW_INLINE u32 tw_narrow_clamped_$Dx$L(const f32* x) {\n  f32 y[4];\n"
       "  for (int k = 0; k < 4; ++k) y[k] = tw_min(tw_max(x[k], -448.0f), 448.0f);\n"
       "  return tw_narrow_$Dx$L(y);\n}",
       ""},
      {"stream", "pack_$D", "",
       "TW_INLINE void tw_stream_$Dx$L($S* p, $V v) {\n"
       "#if defined(__clang__)\n"
       "  __builtin_nontemporal_store(tw_pack_$D(v), ($Q*)p);\n"
       "#else\n"
       "  __builtin_ia32_movntps$J((f32*)p, ($O)tw_pack_$D(v));\n"
       "#endif\n}"},
      {"load_part", "unpack_$D", "",
       "TW_INLINE $V tw_load_part_$Dx$L(const $S* p, i64 first, i64 last, $S pad) {\n"
       "  $Q v = pad - ($Q){};\n"
       "  for (i64 l = max(first, 0); l < min(last, $L); ++l) v[l] = p[l];\n"
       "  return tw_unpack_$D(v);\n}"},
      {"store_part", "pack_$D", "",
       "TW_INLINE void tw_store_part_$Dx$L($S* p, $V v, i64 n) {\n"
       "  const $Q q = tw_pack_$D(v);\n"
       "  for (i64 l = 0; l < min(n, $L); ++l) p[l] = q[l];\n}"},
      {"gather", "unpack_$D", "",
       "TW_INLINE $V tw_gather_$Dx$L(const $S* p, i64 stride) {\n  $Q v;\n"
       "  for (int l = 0; l < $L; ++l) v[l] = p[l * stride];\n  return tw_unpack_$D(v);\n}"},
      {"gather_part", "unpack_$D", "",
       "TW_INLINE $V tw_gather_part_$Dx$L(const $S* p, i64 stride, i64 first, i64 last, $S pad) {\n"
       "  $Q v = pad - ($Q){};\n"
       "  for (i64 l = max(first, 0); l < min(last, $L); ++l) v[l] = p[l * stride];\n"
       "  return tw_unpack_$D(v);\n}"},
      {"scatter", "pack_$D", "",
       "TW_INLINE void tw_scatter_$Dx$L($S* p, i64 stride, $V v, i64 n) {\n"
       "  const $Q q = tw_pack_$D(v);\n"
       "  for (i64 l = 0; l < min(n, $L); ++l) p[l * stride] = q[l];\n}"},
  };
}

}  // namespace tw::cpu
