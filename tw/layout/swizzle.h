#pragma once

#include "tw/layout/layout.h"

namespace tw {

/// Offsets permuted by xor, printed as `Sw<3,4,3>`: the `bits` bits of an offset from bit `base` on
/// are xored with the `bits` bits that lie `shift` higher; with a negative shift the higher ones
/// with the lower. Twice is the identity.
struct Swizzle {
  int bits = 0, base = 0, shift = 0;

  int64_t operator()(int64_t offset) const;
  bool operator==(const Swizzle&) const = default;
};

/// UserError unless bits and base are at least 0, |shift| at least bits, and all in 62 bits.
void check_swizzle(const Swizzle& swizzle);
std::string to_string(const Swizzle& swizzle);

/// swizzle(layout(c)), printed as `Sw<3,4,3> o (8,64):(64,1)`.
class SwizzledLayout {
 public:
  SwizzledLayout(const Swizzle& swizzle, const Layout& layout)
      : swizzle_(swizzle), layout_(layout) {
    check_swizzle(swizzle);
  }

  const Swizzle& swizzle() const { return swizzle_; }
  const Layout& layout() const { return layout_; }
  int64_t size() const { return layout_.size(); }
  int64_t operator()(int64_t index) const { return swizzle_(layout_(index)); }
  int64_t operator()(const IntTuple& coordinate) const { return swizzle_(layout_(coordinate)); }

 private:
  Swizzle swizzle_;
  Layout layout_;
};

SwizzledLayout composition(const SwizzledLayout& a, const Layout& b);
std::string to_string(const SwizzledLayout& layout);

}  // namespace tw
