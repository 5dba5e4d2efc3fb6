#pragma once

#include <cstdint>

#include "tw/kernels/entry.h"
#include "tw/lang/lang.h"

namespace tw::kernels {

/// How windows slide along one axis of an image: a window at place o covers the input elements
/// o * stride + t * dilation - before, for t in [0, kernel); `after` more lie past the end.
/// Elements outside the image are padding.
struct Window {
  int64_t kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  /// How many places there are on `extent` elements; 0 when none fits.
  int64_t places(int64_t extent) const;
};

/// The padding with which ceil(extent / stride) windows fit (ONNX SAME_UPPER: the odd one after).
Window same_padding(Window w, int64_t extent);

/// Where element t of the windows at places o lies.
Tile along(const Window& w, const Tile& o, const Tile& t);
Tile along(const Window& w, const Tile& o, const Index& t);

/// Calls f(t) for each element of a window of two axes: traced once each, or in loops of the device
/// where they are many.
void for_each_tap(Trace& k, const Window& h, const Window& w,
                  const std::function<void(const Index& th, const Index& tw)>& f);

/// The window that the axes kernel_h, stride_h, dilation_h, before_h, after_h of a problem give
/// along h (or w). With option padding=same the last two follow from the others.
Window window_of(const Problem& p, const std::string& axis, int64_t extent);
std::vector<KernelEntry::Axis> window_axes(bool second);

}  // namespace tw::kernels
