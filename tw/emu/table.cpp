#include <cstdint>

#include "tw/emu/impl/machine.h"

namespace tw::emu {

/// Where the text's code lies in memory; set with the table.
static uintptr_t& code_base() {
  static uintptr_t base = 0;
  return base;
}

/// Of asynchronous work and what waits for it.
void fill_async(TextTable& table) {
  table.mbarrier = [](const char* kind, void* barrier, uint32_t value, int32_t rank, int32_t line) {
    Machine::running_->mbarrier(kind, barrier, value, rank, line);
  };
  table.named = [](const char* kind, uint32_t number, uint32_t threads, int32_t line) {
    Machine::running_->named(kind, number, threads, line);
  };
  table.cluster = [](const char* kind, int32_t line) {
    return Machine::running_->cluster(kind, line);
  };
  table.peer = [](void* shared, uint32_t rank, int32_t line) {
    return Machine::running_->peer(shared, rank, line);
  };
  table.shared_address = [](const void* shared, int32_t line) {
    return Machine::running_->shared_address(shared, line);
  };
  table.tensor = [](const char* kind, const void* map, void* shared, void* barrier,
                    const int32_t* at, int32_t rank, uint32_t mask, int32_t line) {
    Machine::running_->tensor(kind, map, shared, barrier, at, rank, mask, line);
  };
  table.bulk = [](const char* kind, void* shared, void* global, uint32_t bytes, void* barrier,
                  int32_t line) {
    Machine::running_->bulk(kind, shared, global, bytes, barrier, line);
  };
  table.bulk_group = [](const char* kind, int32_t left, int32_t line) {
    Machine::running_->bulk_group(kind, left, line);
  };
  table.fence = [](const char* kind, int32_t line) { Machine::running_->fence(kind, line); };
  table.setmaxnreg = [](const char* kind, int32_t count, int32_t line) {
    Machine::running_->setmaxnreg(kind, count, line);
  };
  table.wgmma = [](const TextWgmma* product, int32_t line) {
    Machine::running_->wgmma(*product, line);
  };
  table.wgmma_group = [](const char* kind, int32_t left, int32_t line) {
    Machine::running_->wgmma_group(kind, left, line);
  };
}

void fill_table(TextTable& table, uintptr_t base) {
  code_base() = base;
  table.access = [](void* address, uint64_t bytes, bool write, void* from) {
    // The call is before the address to return to.
    const uintptr_t code = reinterpret_cast<uintptr_t>(from) - 1 - code_base();
    Machine::running_->access(address, bytes, write,
                              {(static_cast<uint32_t>(code) & Place::kValue) | Place::kIsCode});
  };
  table.fault = [](TextFault kind, int32_t line, void* address, uint64_t alignment) {
    Machine::running_->fault(kind, line, address, alignment);
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
  fill_async(table);
}

}  // namespace tw::emu
