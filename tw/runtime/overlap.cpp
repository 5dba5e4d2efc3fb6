#include "tw/runtime/overlap.h"

#include <algorithm>
#include <cstdlib>

namespace tw {

namespace {

/// Axes of extent > 1 with positive strides, the smallest first; a negative stride is the same set
/// of elements seen from its other end.
struct Axes {
  struct Axis {
    int64_t stride, extent;
  };
  Axis axis[kMaxRank];
  int n = 0;
  int64_t low = 0;  ///< offset of the lowest element

  explicit Axes(const TensorView& t) {
    for (int k = 0; k < t.rank(); ++k) {
      if (t.dims[k] == 1) continue;
      if (t.strides[k] < 0) low += (t.dims[k] - 1) * t.strides[k];
      axis[n++] = {std::abs(t.strides[k]), t.dims[k]};
    }
    std::sort(axis, axis + n, [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  }

  /// Elements from the lowest to the highest of the first m axes, both counted.
  int64_t span(int m) const {
    int64_t elements = 1;
    for (int k = 0; k < m; ++k) elements += (axis[k].extent - 1) * axis[k].stride;
    return elements;
  }
};

}  // namespace

bool overlaps_itself(const TensorView& t) {
  const Axes a(t);
  for (int k = 0; k < a.n; ++k) {
    if (a.axis[k].stride < a.span(k)) return true;
  }
  return false;
}

bool interleave(const TensorView& a, const TensorView& b) {
  if (is_packed(a.dtype) || is_packed(b.dtype)) return false;
  const Axes x(a), y(b);
  if (x.n == 0 || y.n == 0) return false;
  const int64_t size = bytes(a.dtype), pitch = x.axis[x.n - 1].stride * size;
  if (y.axis[y.n - 1].stride * bytes(b.dtype) != pitch || pitch == 0) return false;
  const int64_t width_x = x.span(x.n - 1) * size, width_y = y.span(y.n - 1) * bytes(b.dtype);
  const int64_t from = reinterpret_cast<int64_t>(a.data) + x.low * size;
  const int64_t to = reinterpret_cast<int64_t>(b.data) + y.low * bytes(b.dtype);
  // Where b's rows start inside a's rows, counted modulo the pitch.
  const int64_t shift = ((to - from) % pitch + pitch) % pitch;
  return width_x <= shift && shift + width_y <= pitch;
}

}  // namespace tw
