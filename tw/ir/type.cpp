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

std::string to_string(const Type& t) { return name(t.dtype) + to_string(t.shape); }

}  // namespace tw
