#include <fmt/format.h>

#include "tw/emit/cuda/prelude_cuda.h"

namespace tw::cuda {
namespace {

ThreadFunction load_matrix(bool transposed) {
  const std::string name = transposed ? "tw_ldmatrix_x4_trans" : "tw_ldmatrix_x4";
  return {.name = name,
          .uses = "",
          .cuda = fmt::format(R"(__device__ __forceinline__ void {}(u32 (&r)[4], const void* row) {{
  asm volatile("ldmatrix.sync.aligned.m8n8.x4{}.shared.b16 {{%0, %1, %2, %3}}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"((u32)__cvta_generic_to_shared(row)) : "memory");
}})",
                              name, transposed ? ".trans" : ""),
          .emulated = fmt::format(R"(inline void {0}(u32 (&r)[4], const void* row, TW_LINE) {{
  tw_emu_warp("{0}", &row, sizeof(row), 0, &r, line);
}})",
                                  name)};
}

/// d += a b, of 4, 4 and 2 registers: f16 and bf16 with k = 16, bytes with k = 32, tf32 with k = 8.
ThreadFunction multiply(const std::string& name, const std::string& shape,
                        const std::string& d_type, const std::string& letter,
                        const std::string& types) {
  return {
      .name = name,
      .uses = "",
      .cuda = fmt::format(
          R"(__device__ __forceinline__ void {}({} (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {{
  asm("mma.sync.aligned.{}.row.col.{} {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, "
      "{{%0, %1, %2, %3}};"
      : "+{letter}"(d[0]), "+{letter}"(d[1]), "+{letter}"(d[2]), "+{letter}"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}})",
          name, d_type, shape, types, fmt::arg("letter", letter)),
      .emulated = fmt::format(
          R"(inline void {0}({1} (&d)[4], const u32 (&a)[4], const u32 (&b)[2], TW_LINE) {{
  const u32 in[6] = {{a[0], a[1], a[2], a[3], b[0], b[1]}};
  tw_emu_warp("{0}", in, sizeof(in), 0, &d, line);
}})",
          name, d_type)};
}

ThreadFunction multiply_f64() {
  return {.name = "tw_mma_m8n8k4_f64",
          .uses = "",
          .cuda = R"(__device__ __forceinline__ void tw_mma_m8n8k4_f64(f64 (&d)[2], f64 a, f64 b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(d[0]), "+d"(d[1]) : "d"(a), "d"(b));
})",
          .emulated = R"(inline void tw_mma_m8n8k4_f64(f64 (&d)[2], f64 a, f64 b, TW_LINE) {
  const f64 in[2] = {a, b};
  tw_emu_warp("tw_mma_m8n8k4_f64", in, sizeof(in), 0, &d, line);
})"};
}

// The nearest of 11 bits, ties away from zero. What is no number keeps its upper bits.
const char* const kRoundTf32 =
    R"(__device__ __forceinline__ u32 tw_tf32(f32 x) {
  u32 r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
})";
const char* const kRoundTf32Emulated = R"(inline u32 tw_tf32(f32 x) {
  const u32 bits = __builtin_bit_cast(u32, x);
  return ((bits & 0x7f800000) == 0x7f800000 ? bits : bits + 0x1000) & 0xffffe000;
})";

// x becomes its upper 11 bits, so that nothing overflows; `small` the rest, rounded to 11; `odd`
// becomes NaN where x is no number.
const char* const kSplitTf32 =
    R"(__device__ __forceinline__ void tw_split_tf32(u32& x, u32& small, f32& odd) {
  const f32 all = __builtin_bit_cast(f32, x);
  odd = all * 0.0f + odd;
  x &= 0xffffe000;
  small = tw_tf32(all - __builtin_bit_cast(f32, x));
})";

std::vector<ThreadFunction> tf32_functions() {
  return {{"tw_tf32", "", kRoundTf32, kRoundTf32Emulated},
          {"tw_split_tf32", "tw_tf32", kSplitTf32, kSplitTf32}};
}

std::vector<ThreadFunction> copies() {
  return {
      {"tw_copy_async_16", "",
       R"(__device__ __forceinline__ void tw_copy_async_16(void* shared, const void* global,
                                                   int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"((u32)__cvta_generic_to_shared(shared)),
                  "l"(__cvta_generic_to_global(global)), "r"(bytes) : "memory");
})",
       R"(inline void tw_copy_async_16(void* shared, const void* global, int bytes, TW_LINE) {
  tw_emu_copy_async(shared, global, bytes, line);
})"},
      {"tw_copy_async_commit", "",
       R"(__device__ __forceinline__ void tw_copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
})",
       "inline void tw_copy_async_commit() { tw_emu_copy_commit(); }"},
      {"tw_copy_async_wait", "",
       R"(template <int N> __device__ __forceinline__ void tw_copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
})",
       "template <int N> void tw_copy_async_wait(TW_LINE) { tw_emu_copy_wait(N, line); }"},
  };
}

}  // namespace

std::vector<ThreadFunction> matrix_functions() {
  std::vector<ThreadFunction> all = {
      load_matrix(false),
      load_matrix(true),
      multiply("tw_mma_m16n8k16_f32_bf16", "m16n8k16", "f32", "f", "f32.bf16.bf16.f32"),
      multiply("tw_mma_m16n8k16_f32_f16", "m16n8k16", "f32", "f", "f32.f16.f16.f32"),
      multiply_f64(),
  };
  for (const char* a : {"s8", "u8"}) {
    for (const char* b : {"s8", "u8"}) {
      all.push_back(multiply(fmt::format("tw_mma_m16n8k32_i32_{}_{}", a, b), "m16n8k32", "i32", "r",
                             fmt::format("s32.{}.{}.s32", a, b)));
    }
  }
  all.push_back(multiply("tw_mma_m16n8k8_f32_tf32", "m16n8k8", "f32", "f", "f32.tf32.tf32.f32"));
  for (ThreadFunction& f : tf32_functions()) all.push_back(std::move(f));
  for (ThreadFunction& f : copies()) all.push_back(std::move(f));
  return all;
}

}  // namespace tw::cuda
