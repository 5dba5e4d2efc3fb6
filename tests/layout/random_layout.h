#pragma once

#include "tw/layout/layout.h"

#include "tests/support/random.h"

namespace tw::test {

#ifdef NDEBUG
constexpr int kLayouts = 100'000;
#else
constexpr int kLayouts = 10'000;  // sanitizers are 20 times slower
#endif

/// any: strides of all kinds. apart: each stride a multiple of the extent of the modes below it, so
/// that no two indices meet. compact: offsets 0..size-1.
enum class Strides { any, apart, compact };

struct RandomLayout {
  Random random;

  std::vector<ShapeStride> modes(Strides strides, int64_t most) {
    static const std::vector<int64_t> kShapes = {1, 2, 2, 2, 3, 4, 4, 5, 6, 8};
    std::vector<ShapeStride> modes;
    const int64_t n = random.between(1, 4);
    for (int64_t i = 0, size = 1; i < n; i++) {
      const int64_t shape = random.of(kShapes);
      if (i > 0 && size * shape > most) break;
      modes.push_back({std::min(shape, most), 0});
      size *= shape;
    }
    set_strides(modes, strides);
    return modes;
  }

  /// Modes in random parentheses.
  Layout nested(const std::vector<ShapeStride>& modes, int depth = 0) {
    if (modes.size() == 1 && (depth > 0 || !random.one_in(8))) return unflatten(modes);
    std::vector<Layout> parts;
    std::vector<ShapeStride> part;
    for (const ShapeStride& mode : modes) {
      if (!part.empty() && (depth == 2 || random.one_in(2))) {
        parts.push_back(nested(part, depth + 1));
        part.clear();
      }
      part.push_back(mode);
    }
    parts.push_back(depth == 2 ? unflatten(part) : nested(part, depth + 1));
    return make_layout(std::move(parts));
  }

  Layout layout(Strides strides, int64_t most = 96) { return nested(modes(strides, most)); }
  Strides strides() {
    return random.one_in(2) ? Strides::any : random.one_in(2) ? Strides::apart : Strides::compact;
  }
  /// Two modes at the top.
  Layout matrix(Strides strides, int64_t most = 12) {
    std::vector<ShapeStride> rows = modes(strides, most), columns = modes(strides, most);
    const size_t n = rows.size();
    rows.insert(rows.end(), columns.begin(), columns.end());
    set_strides(rows, strides);
    return make_layout({nested({rows.begin(), rows.begin() + static_cast<int64_t>(n)}),
                        nested({rows.begin() + static_cast<int64_t>(n), rows.end()})});
  }

 private:
  void set_strides(std::vector<ShapeStride>& modes, Strides strides) {
    std::vector<ShapeStride*> order;
    for (ShapeStride& mode : modes)
      order.insert(order.begin() + random.between(0, static_cast<int64_t>(order.size())), &mode);
    int64_t extent = 1;
    for (ShapeStride* mode : order) {
      if (strides == Strides::apart && random.one_in(3)) extent *= random.between(2, 4);
      mode->stride = strides == Strides::any && random.one_in(2) ? random.between(0, 24) : extent;
      extent = mode->stride * mode->shape;
      if (strides == Strides::any && extent == 0) extent = 1;
    }
  }
};

}  // namespace tw::test
