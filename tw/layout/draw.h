#pragma once

#include <functional>

#include "tw/layout/swizzle.h"

namespace tw {

/// A table of labels, row by row; cells of one colour number are alike.
struct Drawing {
  struct Cell {
    std::string label;
    int64_t colour = 0;
  };
  int64_t rows = 0, columns = 0;
  std::vector<Cell> cells;
};

/// The offset at each coordinate: mode 0 runs down, mode 1 to the right. A layout of one mode is a
/// row. UserError for more modes, and for more than 65536 elements.
Drawing drawing(const Layout& layout);
Drawing drawing(const SwizzledLayout& layout);

/// The owners of each element of a tile, as T3V1: thread 3 holds it as its value 1. `layout` takes
/// (thread, value) to row + rows * column. "T0V0+3" has three owners more, an element without is
/// ".".
Drawing thread_value_drawing(const Layout& layout, int64_t rows, int64_t columns);
/// The same from functions of (row, column).
using ElementFunction = std::function<int64_t(int64_t row, int64_t column)>;
Drawing thread_value_drawing(int64_t rows, int64_t columns, const ElementFunction& thread,
                             const ElementFunction& value);

std::string draw(const Drawing& drawing);
std::string draw_svg(const Drawing& drawing);

inline std::string draw(const Layout& layout) { return draw(drawing(layout)); }
inline std::string draw_svg(const Layout& layout) { return draw_svg(drawing(layout)); }

}  // namespace tw
