#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tw/tensor/tensor.h"

namespace tw::check {

/// A tensor for kernels under test. Its elements start as poison (all bits set: NaN, -1), so an
/// output that was not written and an input that should not be read show in results; 256 bytes on
/// each side, and gaps between strided elements, hold a pattern that must survive.
class Guarded {
 public:
  static constexpr int64_t kGuard = 256;
  static constexpr unsigned char kPoison = 0xff;

  /// `strides` in elements, any sign, row-major when empty; the tensor's first byte lies
  /// `misaligned` bytes after a multiple of 64.
  Guarded(DType t, std::vector<int64_t> dims, std::vector<int64_t> strides = {},
          int64_t misaligned = 0) {
    if (strides.empty()) strides = contiguous_strides(dims, t);
    view_ = {nullptr, t, std::move(dims), std::move(strides)};
    const ByteRange r = byte_range(view_);
    size_ = 2 * kGuard + r.end - r.begin;
    memory_ = host_tensor(u8, {size_ + misaligned}).slice(0, misaligned, size_ + misaligned);
    view_.data = bytes_at(kGuard) - r.begin;

    for (int64_t i = 0; i < size_; ++i) *bytes_at(i) = pattern(i);
    owned_.assign(size_, false);
    for (int64_t i = 0; i < view_.count(); ++i) {
      const int64_t bit = first_bit(i);
      for (int64_t b = bit >> 3; b <= (bit + bits(t) - 1) >> 3; ++b) owned_[b] = true;
    }
    poison(kPoison);
  }

  const TensorView& view() const { return view_; }
  operator const TensorView&() const { return view_; }

  /// Sets element i, in row-major order, to value(i).
  template <class F>
  void fill(F&& value) {
    for (int64_t i = 0; i < view_.count(); ++i) set(view_, i, value(i));
  }

  /// Overwrites every byte of every element, or as many bits of it as a packed one has.
  void poison(unsigned char with) {
    for (int64_t i = 0; i < view_.count(); ++i)
      store_bits(view_.dtype, view_.data, view_.offset(i), with * kOnes);
  }

  /// Bytes of all elements in row-major order; a packed one has a byte of its own here.
  std::string contents() const {
    std::string out;
    for (int64_t i = 0; i < view_.count(); ++i) {
      const uint64_t code = load_bits(view_.dtype, view_.data, view_.offset(i));
      out.append(reinterpret_cast<const char*>(&code), bytes(view_.dtype));
    }
    return out;
  }

  /// Names the first byte outside the elements that was written; empty when there is none.
  std::string damage() const {
    for (int64_t i = 0; i < size_; ++i) {
      if (owned_[i] || *bytes_at(i) == pattern(i)) continue;
      return "byte " + std::to_string(i - kGuard) + " of the range of " + to_string(view_) +
             " lies in no element and was written";
    }
    return "";
  }

  /// Number of elements that still are poison, bit for bit.
  int64_t unwritten() const {
    int64_t n = 0;
    const uint64_t poison = kPoison * kOnes >> (64 - bits(view_.dtype));
    for (int64_t i = 0; i < view_.count(); ++i)
      n += load_bits(view_.dtype, view_.data, view_.offset(i)) == poison;
    return n;
  }

 private:
  static unsigned char pattern(int64_t i) { return static_cast<unsigned char>(0xa5 + 59 * i); }
  unsigned char* bytes_at(int64_t i) const { return memory_.data<unsigned char>() + i; }
  static constexpr uint64_t kOnes = 0x0101010101010101;
  /// In the memory.
  int64_t first_bit(int64_t i) const {
    return 8 * (static_cast<unsigned char*>(view_.data) - bytes_at(0)) +
           view_.offset(i) * bits(view_.dtype);
  }

  TensorView view_;
  int64_t size_ = 0;
  Tensor memory_;
  std::vector<bool> owned_;
};

}  // namespace tw::check
