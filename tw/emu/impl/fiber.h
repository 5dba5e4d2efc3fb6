#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

namespace tw::emu {

/// A place where execution can be left and taken up again. Nothing unwinds through it.
class Fiber {
 public:
  /// The next jump to it calls `entry`, which must never return, on that stack.
  void prepare(char* stack, size_t bytes, void (*entry)());
  /// Leaves the running code at `from` and goes on at `to`.
  static void jump(Fiber& from, Fiber& to);

 private:
#if defined(__x86_64__) || defined(__aarch64__)
  void* stack_pointer_ = nullptr;
#else
  ucontext_t context_{};
#endif
};

/// Memory for the stacks of a number of fibers, each below a page that nobody may touch.
class FiberStacks {
 public:
  static constexpr size_t kBytes = 128 << 10;  ///< of one

  /// Throws EnvError when there is no memory for them.
  explicit FiberStacks(size_t count);
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;
  char* stack(size_t i) const { return memory_ + i * (kBytes + kGuard) + kGuard; }

 private:
  static constexpr size_t kGuard = 4096;
  size_t bytes_;
  char* memory_;
};

}  // namespace tw::emu
