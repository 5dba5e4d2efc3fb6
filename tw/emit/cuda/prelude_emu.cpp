#include "tw/emit/cuda/prelude_emu.h"

namespace tw::cuda {

// The compiler is told to instrument for its thread sanitizer, whose runtime is not linked: these
// are the runtime's entry points. A thread's own stack is its registers and local arrays.
const char* const kEmulatedHead = R"(#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
struct TwEmuThread {
  char* stack;
  u64 stack_bytes;
  char* in_flight;
  u64 in_flight_bytes;
  i32 thread;
  i64 block;
  u8* shared;
};
struct TwEmuWgmma {
  f32* d;
  i32 n;
  const char* type;
  bool a_transposed, b_transposed, adds;
  const u32* registers[4];
  u64 a, b;
};
enum class TwEmuFault : i32 { misaligned, out_of_bounds, shift };
struct TwEmu {
  TwEmuThread* self;
  i64 blocks;
  void (*access)(void* address, u64 bytes, bool write, void* from);
  void (*fault)(TwEmuFault kind, i32 line, void* address, u64 alignment);
  i32 (*sync)(const char* kind, i32 value, i32 line);
  void (*warp)(const char* kind, const void* in, u64 bytes, i32 argument, void* out, i32 line);
  void (*atomic)(const char* name, const char* type, void* address, const void* value,
                 const void* expected, void* old, i32 line);
  void (*copy_async)(void* shared, const void* global, i32 bytes, i32 line);
  void (*copy_commit)();
  void (*copy_wait)(i32 left, i32 line);
  void (*mbarrier)(const char* kind, void* barrier, u32 value, i32 rank, i32 line);
  void (*named)(const char* kind, u32 number, u32 threads, i32 line);
  u32 (*cluster)(const char* kind, i32 line);
  void* (*peer)(void* shared, u32 rank, i32 line);
  u32 (*shared_address)(const void* shared, i32 line);
  void (*tensor)(const char* kind, const void* map, void* shared, void* barrier, const i32* at,
                 i32 rank, u32 mask, i32 line);
  void (*bulk)(const char* kind, void* shared, void* global, u32 bytes, void* barrier, i32 line);
  void (*bulk_group)(const char* kind, i32 left, i32 line);
  void (*fence)(const char* kind, i32 line);
  void (*setmaxnreg)(const char* kind, i32 count, i32 line);
  void (*wgmma)(const TwEmuWgmma* product, i32 line);
  void (*wgmma_group)(const char* kind, i32 left, i32 line);
};
#define TW_EMU extern "C" __attribute__((noinline, no_sanitize("thread"), visibility("hidden")))
extern "C" {
__attribute__((visibility("default"))) TwEmu tw_emu;
__attribute__((visibility("default"))) u64 tw_emu_bytes = sizeof(TwEmu);
}
TW_EMU void tw_emu_access(void* p, u64 bytes, bool write, void* from) {
  const TwEmuThread* self = tw_emu.self;
  if ((u64)((char*)p - self->stack) >= self->stack_bytes ||
      (u64)((char*)p - self->in_flight) < self->in_flight_bytes)
    tw_emu.access(p, bytes, write, from);
}
#define TW_EMU_FROM __builtin_return_address(0)
#define TW_EMU_HOOKS(kind, write)                                                               \
  TW_EMU void __tsan_##kind##1(void* p) { tw_emu_access(p, 1, write, TW_EMU_FROM); }            \
  TW_EMU void __tsan_##kind##2(void* p) { tw_emu_access(p, 2, write, TW_EMU_FROM); }            \
  TW_EMU void __tsan_##kind##4(void* p) { tw_emu_access(p, 4, write, TW_EMU_FROM); }            \
  TW_EMU void __tsan_##kind##8(void* p) { tw_emu_access(p, 8, write, TW_EMU_FROM); }            \
  TW_EMU void __tsan_##kind##16(void* p) { tw_emu_access(p, 16, write, TW_EMU_FROM); }          \
  TW_EMU void __tsan_unaligned_##kind##2(void* p) { tw_emu_access(p, 2, write, TW_EMU_FROM); }  \
  TW_EMU void __tsan_unaligned_##kind##4(void* p) { tw_emu_access(p, 4, write, TW_EMU_FROM); }  \
  TW_EMU void __tsan_unaligned_##kind##8(void* p) { tw_emu_access(p, 8, write, TW_EMU_FROM); }  \
  TW_EMU void __tsan_unaligned_##kind##16(void* p) { tw_emu_access(p, 16, write, TW_EMU_FROM); } \
  TW_EMU void __tsan_##kind##_range(void* p, u64 n) { tw_emu_access(p, n, write, TW_EMU_FROM); }
TW_EMU_HOOKS(read, false)
TW_EMU_HOOKS(write, true)
TW_EMU void __tsan_init() {}
TW_EMU void __tsan_func_entry(void*) {}
TW_EMU void __tsan_func_exit() {}
// clang calls these for copies of structs, g++ for large ones.
TW_EMU void* memmove(void* to, const void* from, u64 bytes) {
  tw_emu_access((void*)from, bytes, false, TW_EMU_FROM);
  tw_emu_access(to, bytes, true, TW_EMU_FROM);
  const bool up = to <= from;
  for (u64 n = bytes; n > 0; --n) {
    const u64 i = up ? bytes - n : n - 1;
    ((volatile u8*)to)[i] = ((const volatile u8*)from)[i];
  }
  return to;
}
TW_EMU void* memcpy(void* to, const void* from, u64 bytes) {
  tw_emu_access((void*)from, bytes, false, TW_EMU_FROM);
  tw_emu_access(to, bytes, true, TW_EMU_FROM);
  for (u64 i = 0; i < bytes; ++i) ((volatile u8*)to)[i] = ((const volatile u8*)from)[i];
  return to;
}
TW_EMU void* memset(void* to, i32 value, u64 bytes) {
  tw_emu_access(to, bytes, true, TW_EMU_FROM);
  for (u64 i = 0; i < bytes; ++i) ((volatile u8*)to)[i] = (u8)value;
  return to;
}
// Of the sanitizers for alignment, bounds of local arrays and shifts; they know the place.
struct TwEmuPlace { const char* file; u32 line, column; };
struct TwEmuMismatch { TwEmuPlace at; const void* type; u8 log_alignment, kind; };
TW_EMU void __ubsan_handle_type_mismatch_v1_abort(TwEmuMismatch* m, u64 p) {
  tw_emu.fault(TwEmuFault::misaligned, (i32)m->at.line, (void*)p, 1ul << m->log_alignment);
}
TW_EMU void __ubsan_handle_out_of_bounds_abort(TwEmuPlace* at, u64) {
  tw_emu.fault(TwEmuFault::out_of_bounds, (i32)at->line, 0, 0);
}
TW_EMU void __ubsan_handle_shift_out_of_bounds_abort(TwEmuPlace* at, u64, u64) {
  tw_emu.fault(TwEmuFault::shift, (i32)at->line, 0, 0);
}
// The table's functions, so that text which is instrumented does not read the table itself.
TW_EMU TwEmuThread* tw_emu_self() { return tw_emu.self; }
TW_EMU i64 tw_emu_blocks() { return tw_emu.blocks; }
TW_EMU i32 tw_emu_thread() { return tw_emu.self->thread; }
TW_EMU i64 tw_emu_block() { return tw_emu.self->block; }
TW_EMU u8* tw_emu_shared() { return tw_emu.self->shared; }
TW_EMU i32 tw_emu_sync(const char* kind, i32 value, i32 line) {
  return tw_emu.sync(kind, value, line);
}
TW_EMU void tw_emu_warp(const char* kind, const void* in, u64 bytes, i32 argument, void* out,
                        i32 line) {
  tw_emu.warp(kind, in, bytes, argument, out, line);
}
TW_EMU void tw_emu_atomic(const char* name, const char* type, void* address, const void* value,
                          const void* expected, void* old, i32 line) {
  tw_emu.atomic(name, type, address, value, expected, old, line);
}
TW_EMU void tw_emu_copy_async(void* shared, const void* global, i32 bytes, i32 line) {
  tw_emu.copy_async(shared, global, bytes, line);
}
TW_EMU void tw_emu_copy_commit() { tw_emu.copy_commit(); }
TW_EMU void tw_emu_copy_wait(i32 left, i32 line) { tw_emu.copy_wait(left, line); }
#define TW_LINE i32 line = __builtin_LINE()
)";

}  // namespace tw::cuda
