#pragma once

#include <atomic>
#include <cstdint>
#include <unistd.h>

#include "tw/runtime/futex.h"

namespace tw {

/// A mutex that a forked child finds unlocked when another thread of its parent held it: that
/// thread does not exist in the child. What it guards must be consistent at every moment, or be
/// made anew by the next holder. Meets the standard's BasicLockable.
class ForkMutex {
 public:
  void lock() {
    const uint32_t me = static_cast<uint32_t>(getpid());
    for (;;) {
      uint32_t held = holder_.load(std::memory_order_relaxed);
      if (held != me && holder_.compare_exchange_strong(held, me, std::memory_order_acquire)) {
        return;
      }
      if (held == me) futex_wait(holder_, me);
    }
  }
  void unlock() {
    holder_.store(0, std::memory_order_release);
    futex_wake_all(holder_);
  }

 private:
  std::atomic<uint32_t> holder_{0};  ///< process id of the thread that holds it
};

}  // namespace tw
