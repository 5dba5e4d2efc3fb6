#include "tw/ir/type.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tw {

int64_t count(const Extents& e) {
  int64_t n = 1;
  for (int64_t x : e) n *= x;
  return n;
}

std::string to_string(const Extents& e) { return fmt::format("[{}]", fmt::join(e, ",")); }

/// Damaged programs are printed too, as reproducers: a dtype outside the enum must not be looked
/// up.
std::string to_string(const Type& t) {
  const int code = static_cast<int>(t.dtype);
  const bool known = code >= 0 && code < kDTypeCount;
  return (known ? name(t.dtype) : fmt::format("dtype{}", code)) + to_string(t.shape);
}

}  // namespace tw
