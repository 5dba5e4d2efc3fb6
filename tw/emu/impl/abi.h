#pragma once

#include <cstdint>

namespace tw::emu {

/// What emulated text and the emulator agree on; the text declares the same in
/// emit/cuda/prelude_emu.cpp, and says the size of it in `tw_emu_bytes`.
struct TextThread {
  char* stack;
  uint64_t stack_bytes;
  char* in_flight;  ///< where on the stack asynchronous work has registers, all of it
  uint64_t in_flight_bytes;
  int32_t thread;
  int64_t block;
  uint8_t* shared;
};
/// One thread's part of a matrix product of four warps.
struct TextWgmma {
  float* d;
  int32_t n;
  const char* type;
  bool a_transposed, b_transposed, adds;
  const uint32_t* registers[4];  ///< of A; null: it is in shared memory
  uint64_t a, b;                 ///< descriptors
};
/// What the sanitizers of the text itself find; address and alignment are those of the first.
enum class TextFault : int32_t { misaligned, out_of_bounds, shift };
struct TextTable {
  TextThread* self;
  int64_t blocks;
  void (*access)(void* address, uint64_t bytes, bool write, void* from);
  void (*fault)(TextFault kind, int32_t line, void* address, uint64_t alignment);
  int32_t (*sync)(const char* kind, int32_t value, int32_t line);
  void (*warp)(const char* kind, const void* in, uint64_t bytes, int32_t argument, void* out,
               int32_t line);
  void (*atomic)(const char* name, const char* type, void* address, const void* value,
                 const void* expected, void* old, int32_t line);
  void (*copy_async)(void* shared, const void* global, int32_t bytes, int32_t line);
  void (*copy_commit)();
  void (*copy_wait)(int32_t left, int32_t line);
  void (*mbarrier)(const char* kind, void* barrier, uint32_t value, int32_t rank, int32_t line);
  void (*named)(const char* kind, uint32_t number, uint32_t threads, int32_t line);
  uint32_t (*cluster)(const char* kind, int32_t line);
  void* (*peer)(void* shared, uint32_t rank, int32_t line);
  uint32_t (*shared_address)(const void* shared, int32_t line);
  void (*tensor)(const char* kind, const void* map, void* shared, void* barrier, const int32_t* at,
                 int32_t rank, uint32_t mask, int32_t line);
  void (*bulk)(const char* kind, void* shared, void* global, uint32_t bytes, void* barrier,
               int32_t line);
  void (*bulk_group)(const char* kind, int32_t left, int32_t line);
  void (*fence)(const char* kind, int32_t line);
  void (*setmaxnreg)(const char* kind, int32_t count, int32_t line);
  void (*wgmma)(const TextWgmma* product, int32_t line);
  void (*wgmma_group)(const char* kind, int32_t left, int32_t line);
};

}  // namespace tw::emu
