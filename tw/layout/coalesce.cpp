#include "tw/layout/algebra.h"

namespace tw {

static bool runs_on(const ShapeStride& a, const ShapeStride& b) {
  int64_t end = 0;
  return !__builtin_mul_overflow(a.shape, a.stride, &end) && end == b.stride;
}

Layout coalesce(const Layout& layout) {
  std::vector<ShapeStride> merged;
  for (const ShapeStride& mode : flatten(layout)) {
    if (mode.shape == 1) continue;
    if (!merged.empty() && runs_on(merged.back(), mode))
      merged.back().shape *= mode.shape;
    else
      merged.push_back(mode);
  }
  return unflatten(merged);
}

Layout coalesce_modes(const Layout& layout) {
  if (!layout.is_tuple()) return coalesce(layout);
  std::vector<Layout> modes;
  for (int i = 0; i < layout.rank(); i++) modes.push_back(coalesce(layout.mode(i)));
  return make_layout(std::move(modes));
}

}  // namespace tw
