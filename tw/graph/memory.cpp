#include "tw/graph/memory.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace tw::graph {

Layout place(const std::vector<Lifetime>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  const auto rounded = [](int64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; };
  Layout l{std::vector<int64_t>(buffers.size()), 0};
  std::vector<size_t> placed;  // by offset
  for (size_t i : order) {
    const Lifetime& b = buffers[i];
    int64_t at = 0;
    for (size_t j : placed) {
      const Lifetime& other = buffers[j];
      if (other.last < b.first || b.last < other.first) continue;
      if (at + rounded(b.bytes) <= l.offsets[j]) break;
      at = std::max(at, l.offsets[j] + rounded(other.bytes));
    }
    l.offsets[i] = at;
    l.bytes = std::max(l.bytes, at + rounded(b.bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t x, size_t y) { return l.offsets[x] < l.offsets[y]; }),
                  i);
  }
  return l;
}

bool share_bytes(const TensorView& a, const TensorView& b) {
  const ByteRange in_a = byte_range(a), in_b = byte_range(b);
  if (in_a.begin == in_a.end || in_b.begin == in_b.end) return false;
  const char *at_a = static_cast<const char*>(a.data), *at_b = static_cast<const char*>(b.data);
  return std::less<>()(at_a + in_a.begin, at_b + in_b.end) &&
         std::less<>()(at_b + in_b.begin, at_a + in_a.end);
}

}  // namespace tw::graph
