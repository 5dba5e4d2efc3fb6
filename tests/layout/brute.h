#pragma once

#include <algorithm>
#include <vector>

#include "tw/layout/layout.h"

namespace tw::test {

using Offsets = std::vector<int64_t>;

/// layout(i) for every i, by counting through its modes.
inline Offsets offsets(const Layout& layout) {
  Offsets all = {0};
  for (const ShapeStride& mode : flatten(layout)) {
    const size_t before = all.size();
    for (int64_t c = 1; c < mode.shape; c++)
      for (size_t i = 0; i < before; i++) all.push_back(all[i] + c * mode.stride);
  }
  return all;
}

inline Offsets sorted(Offsets all) {
  std::sort(all.begin(), all.end());
  return all;
}

inline Offsets distinct(Offsets all) {
  all = sorted(std::move(all));
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Whether every coordinate of `a` is one of `b`.
inline bool compatible(const Layout& a, const Layout& b) {
  if (a.size() != b.size()) return false;
  if (!a.is_tuple()) return true;
  if (a.rank() != b.rank() || !b.is_tuple()) return false;
  for (int i = 0; i < a.rank(); i++)
    if (!compatible(a.mode(i), b.mode(i))) return false;
  return true;
}

}  // namespace tw::test
