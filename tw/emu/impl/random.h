#pragma once

#include <cstdint>

namespace tw::emu {

/// A stream of numbers that a seed decides.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567890abcdefu) {}
  /// One of 0 .. n - 1.
  uint32_t below(uint32_t n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<uint32_t>((((state_ * 0x2545f4914f6cdd1du) >> 32) * n) >> 32);
  }

 private:
  uint64_t state_;
};

}  // namespace tw::emu
