#pragma once

#include <cstdint>

namespace tw::measure {

/// Memory that this process shares with others through a descriptor.
class SharedMemory {
 public:
  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Makes `bytes` of it, zero.
  void create(int64_t bytes);
  /// From now on nobody else can map it for writing, nor write through the descriptor.
  void seal();
  /// Maps what another process made.
  void map(int descriptor, int64_t bytes, bool writable);

  int descriptor() const { return descriptor_; }
  char* data() const { return base_; }
  int64_t bytes() const { return bytes_; }

 private:
  int descriptor_ = -1;
  int64_t bytes_ = 0;
  char* base_ = nullptr;
};

}  // namespace tw::measure
