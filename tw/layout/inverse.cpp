#include <algorithm>
#include <fmt/format.h>
#include <tuple>

#include "tw/base/error.h"
#include "tw/layout/algebra.h"

namespace tw {
namespace {

struct PlacedMode {
  int64_t shape, stride;
  int64_t index;  // of the layout, where this mode's coordinate is 1 and the others' 0
};

/// The modes that move the offset, by stride.
std::vector<PlacedMode> sorted_modes(const Layout& layout) {
  std::vector<PlacedMode> modes;
  int64_t index = 1;
  for (const ShapeStride& mode : flatten(layout)) {
    if (mode.shape > 1 && mode.stride > 0) modes.push_back({mode.shape, mode.stride, index});
    index *= mode.shape;
  }
  std::stable_sort(modes.begin(), modes.end(), [](const PlacedMode& a, const PlacedMode& b) {
    return std::tie(a.stride, a.shape) < std::tie(b.stride, b.shape);
  });
  return modes;
}

}  // namespace

Layout complement(const Layout& layout, int64_t n) {
  if (n < 1) throw UserError(fmt::format("complement: up to {}: wanted at least 1", n));
  std::vector<ShapeStride> gaps;
  int64_t extent = 1;  // offsets below it are reached
  for (const PlacedMode& mode : sorted_modes(layout)) {
    if (mode.stride % extent != 0)
      throw UserError(fmt::format("complement: {}: stride {}: wanted a multiple of {}",
                                  to_string(layout), mode.stride, extent));
    gaps.push_back({mode.stride / extent, extent});
    if (__builtin_mul_overflow(mode.shape, mode.stride, &extent))
      throw UserError(fmt::format("complement: {} does not fit in 64 bits", to_string(layout)));
  }
  gaps.push_back({n / extent + (n % extent != 0), extent});
  return coalesce(unflatten(gaps));
}

Layout right_inverse(const Layout& layout) {
  std::vector<ShapeStride> modes;
  int64_t extent = 1;
  for (const PlacedMode& mode : sorted_modes(layout)) {
    if (mode.stride != extent) continue;
    modes.push_back({mode.shape, mode.index});
    if (__builtin_mul_overflow(extent, mode.shape, &extent)) break;
  }
  return coalesce(unflatten(modes));
}

Layout left_inverse(const Layout& layout) {
  for (const ShapeStride& mode : flatten(layout))
    if (mode.shape > 1 && mode.stride == 0)
      throw UserError(
          fmt::format("left inverse: {}: stride 0 of shape {}: wanted one offset for "
                      "each index",
                      to_string(layout), mode.shape));
  return right_inverse(make_layout({layout, complement(layout, layout.cosize())}));
}

}  // namespace tw
