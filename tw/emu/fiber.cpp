#include "tw/emu/impl/fiber.h"

#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>

#include "tw/base/error.h"

// Saves what a call must keep, swaps stacks, restores. A tenth of what swapcontext() takes, which
// asks the kernel for signal masks.
#if defined(__x86_64__)
asm(R"(
.text
.globl tw_emu_fiber_switch
.hidden tw_emu_fiber_switch
.type tw_emu_fiber_switch,@function
tw_emu_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tw_emu_fiber_switch,.-tw_emu_fiber_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl tw_emu_fiber_switch
.hidden tw_emu_fiber_switch
.type tw_emu_fiber_switch,@function
tw_emu_fiber_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size tw_emu_fiber_switch,.-tw_emu_fiber_switch
)");
#endif

namespace tw::emu {

#if defined(__x86_64__) || defined(__aarch64__)

extern "C" void tw_emu_fiber_switch(void** save, void* to);

void Fiber::prepare(char* stack, size_t bytes, void (*entry)()) {
  char* top = stack + bytes / 16 * 16;
#if defined(__x86_64__)
  // Six registers and the address to return to; at entry the stack is 8 off a multiple of 16.
  constexpr size_t kFrame = 64, kEntry = 48;
#else
  constexpr size_t kFrame = 160, kEntry = 88;
#endif
  std::memset(top - kFrame, 0, kFrame);
  std::memcpy(top - kFrame + kEntry, &entry, sizeof(entry));
  stack_pointer_ = top - kFrame;
}

void Fiber::jump(Fiber& from, Fiber& to) {
  tw_emu_fiber_switch(&from.stack_pointer_, to.stack_pointer_);
}

#else

void Fiber::prepare(char* stack, size_t bytes, void (*entry)()) {
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack;
  context_.uc_stack.ss_size = bytes;
  context_.uc_link = nullptr;
  makecontext(&context_, entry, 0);
}

void Fiber::jump(Fiber& from, Fiber& to) { swapcontext(&from.context_, &to.context_); }

#endif

FiberStacks::FiberStacks(size_t count) : bytes_(count * (kBytes + kGuard)) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw EnvError(fmt::format("no memory for the stacks of {} emulated threads", count));
  memory_ = static_cast<char*>(memory);
  for (size_t i = 0; i < count; ++i) mprotect(stack(i) - kGuard, kGuard, PROT_NONE);
}

FiberStacks::~FiberStacks() { munmap(memory_, bytes_); }

}  // namespace tw::emu
