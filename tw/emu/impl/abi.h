#pragma once

#include <cstdint>

namespace tw::emu {

/// What emulated text and the emulator agree on; the text declares the same in
/// emit/cuda/prelude_emu.cpp, and says the size of it in `tw_emu_bytes`.
struct TextThread {
  char* stack;
  uint64_t stack_bytes;
  int32_t thread;
  int64_t block;
  uint8_t* shared;
};
struct TextTable {
  TextThread* self;
  int64_t blocks;
  void (*access)(void* address, uint64_t bytes, bool write, void* from);
  void (*fault)(int32_t line, void* address, uint64_t alignment);
  int32_t (*sync)(const char* kind, int32_t value, int32_t line);
  void (*warp)(const char* kind, const void* in, uint64_t bytes, int32_t argument, void* out,
               int32_t line);
  void (*atomic)(const char* name, const char* type, void* address, const void* value,
                 const void* expected, void* old, int32_t line);
  void (*copy_async)(void* shared, const void* global, int32_t bytes, int32_t line);
  void (*copy_commit)();
  void (*copy_wait)(int32_t left, int32_t line);
};

}  // namespace tw::emu
