#pragma once

#include <cstdint>

namespace tw {

/// Scratch memory of the calling thread, one block for each depth of nested runs: a task of a
/// nested run must not share its block with the task that it runs in.
class ThreadScratch {
 public:
  /// At least `bytes` bytes of the current depth, 64-byte aligned; null when memory is not to be
  /// had. Blocks grow, and are freed when the thread ends. Blocks over 2 MB use huge pages.
  static void* get(int64_t bytes) noexcept;

  /// While alive, get() of this thread gives another block.
  class Nested {
   public:
    Nested();
    ~Nested();
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
  };
  static bool nested();
};

}  // namespace tw
