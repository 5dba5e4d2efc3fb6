#include <cstdint>

#include "tw/emu/impl/machine.h"

namespace tw::emu {

/// Where the text's code lies in memory; set with the table.
static uintptr_t& code_base() {
  static uintptr_t base = 0;
  return base;
}

void fill_table(TextTable& table, uintptr_t base) {
  code_base() = base;
  table.access = [](void* address, uint64_t bytes, bool write, void* from) {
    // The call is before the address to return to.
    const uintptr_t code = reinterpret_cast<uintptr_t>(from) - 1 - code_base();
    Machine::running_->access(address, bytes, write,
                              {(static_cast<uint32_t>(code) & Place::kValue) | Place::kIsCode});
  };
  table.fault = [](int32_t line, void* address, uint64_t alignment) {
    Machine::running_->fault(line, address, alignment);
  };
  table.sync = [](const char* kind, int32_t value, int32_t line) {
    return Machine::running_->sync(kind, value, line);
  };
  table.warp = [](const char* kind, const void* in, uint64_t bytes, int32_t argument, void* out,
                  int32_t line) {
    Machine::running_->warp({kind, line, in, bytes, argument, out});
  };
  table.atomic = [](const char* name, const char* type, void* address, const void* value,
                    const void* expected, void* old, int32_t line) {
    Machine::running_->atomic(name, type, address, value, expected, old, line);
  };
  table.copy_async = [](void* shared, const void* global, int32_t bytes, int32_t line) {
    Machine::running_->copy_async(shared, global, bytes, line);
  };
  table.copy_commit = [] { Machine::running_->copy_commit(); };
  table.copy_wait = [](int32_t left, int32_t) { Machine::running_->copy_wait(left); };
}

}  // namespace tw::emu
