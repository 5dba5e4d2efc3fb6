#include "tw/kernels/conv/window.h"

#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"

namespace tw::kernels {

int64_t Window::places(int64_t extent) const {
  const int64_t room = extent + before + after - reach();
  return room < 0 ? 0 : room / stride + 1;
}

Window same_padding(Window w, int64_t extent) {
  const int64_t places = cdiv(extent, w.stride);
  const int64_t all = std::max<int64_t>((places - 1) * w.stride + w.reach() - extent, 0);
  w.before = all / 2;
  w.after = all - w.before;
  return w;
}

Tile along(const Window& w, const Tile& o, const Tile& t) {
  const Tile first = o * w.stride;
  const Tile offset = t * w.dilation - w.before;
  return first + offset;
}

Tile along(const Window& w, const Tile& o, const Index& t) {
  const Tile first = o * w.stride;
  return first + (t * w.dilation - w.before);
}

void for_each_tap(Trace& k, const Window& h, const Window& w,
                  const std::function<void(const Index& th, const Index& tw)>& f) {
  constexpr int64_t kTraced = 64;
  if (h.kernel * w.kernel <= kTraced) {
    for (int64_t a = 0; a < h.kernel; ++a)
      for (int64_t b = 0; b < w.kernel; ++b) f(a, b);
    return;
  }
  for (Index a : k.range(h.kernel))
    for (Index b : k.range(w.kernel)) f(a, b);
}

Window window_of(const Problem& p, const std::string& axis, int64_t extent) {
  Window w{p.extent("kernel_" + axis), p.extent("stride_" + axis), p.extent("dilation_" + axis),
           p.extent("before_" + axis), p.extent("after_" + axis)};
  for (const auto& [what, value] : {std::pair("kernel", w.kernel), std::pair("stride", w.stride),
                                    std::pair("dilation", w.dilation)})
    if (value < 1)
      throw UserError(fmt::format("{}_{} is {}, wanted at least 1", what, axis, value));
  return p.option("padding") == "same" ? same_padding(w, extent) : w;
}

std::vector<KernelEntry::Axis> window_axes(bool second) {
  std::vector<KernelEntry::Axis> all = {{"kernel_w", 3, "elements of a window along w"},
                                        {"stride_w", 1, "from window to window along w"},
                                        {"dilation_w", 1, "from element to element of a window"},
                                        {"before_w", 0, "padding before w"},
                                        {"after_w", 0, "padding after w"}};
  if (!second) return all;
  all.insert(all.end(), {{"kernel_h", 3, "elements of a window along h"},
                         {"stride_h", 1, "from window to window along h"},
                         {"dilation_h", 1, "from element to element of a window"},
                         {"before_h", 0, "padding before h"},
                         {"after_h", 0, "padding after h"}});
  return all;
}

}  // namespace tw::kernels
