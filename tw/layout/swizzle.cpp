#include "tw/layout/swizzle.h"

#include <cstdlib>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/layout/algebra.h"

namespace tw {

int64_t Swizzle::operator()(int64_t offset) const {
  const int64_t mask = ((int64_t{1} << bits) - 1) << base;
  if (shift >= 0) return offset ^ ((offset >> shift) & mask);
  return offset ^ ((offset & mask) << -shift);
}

void check_swizzle(const Swizzle& s) {
  constexpr int kBits = 62;
  if (s.bits < 0 || s.bits > kBits || s.base < 0 || s.base > kBits)
    throw UserError(fmt::format("{}: wanted bits and base in 0..{}", to_string(s), kBits));
  if (s.shift < -kBits || s.shift > kBits || std::abs(s.shift) < s.bits)
    throw UserError(
        fmt::format("{}: shift: wanted -{}..{}, and not nearer to 0 than the number of bits",
                    to_string(s), kBits, kBits));
  if (s.bits + s.base + std::abs(s.shift) > kBits)
    throw UserError(fmt::format("{}: its bits end at {}: wanted at most {}", to_string(s),
                                s.bits + s.base + std::abs(s.shift), kBits));
}

std::string to_string(const Swizzle& s) {
  return fmt::format("Sw<{},{},{}>", s.bits, s.base, s.shift);
}

SwizzledLayout composition(const SwizzledLayout& a, const Layout& b) {
  return SwizzledLayout(a.swizzle(), composition(a.layout(), b));
}

std::string to_string(const SwizzledLayout& layout) {
  return to_string(layout.swizzle()) + " o " + to_string(layout.layout());
}

}  // namespace tw
