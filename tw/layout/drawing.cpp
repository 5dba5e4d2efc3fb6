#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/layout/draw.h"

namespace tw {

static Drawing blank_drawing(int64_t rows, int64_t columns) {
  constexpr int64_t kMost = 65536;
  if (rows < 1 || columns < 1 || rows > kMost || columns > kMost / rows)
    throw UserError(fmt::format("drawing of {} x {} elements: wanted 1..{}", rows, columns, kMost));
  return {rows, columns, std::vector<Drawing::Cell>(static_cast<size_t>(rows * columns))};
}

static Drawing::Cell& cell(Drawing& drawing, int64_t row, int64_t column) {
  return drawing.cells[static_cast<size_t>(row * drawing.columns + column)];
}

template <class F>
static Drawing drawing_of(const Layout& shape, const F& offset) {
  if (shape.rank() > 2)
    throw UserError(
        fmt::format("drawing of {}: {} modes: wanted at most 2", to_string(shape), shape.rank()));
  const int64_t rows = shape.rank() == 2 ? shape.mode(0).size() : 1;
  Drawing drawing = blank_drawing(rows, shape.size() / rows);
  for (int64_t i = 0; i < shape.size(); i++)
    cell(drawing, i % rows, i / rows) = {std::to_string(offset(i)), offset(i)};
  return drawing;
}

Drawing drawing(const Layout& layout) { return drawing_of(layout, layout); }
Drawing drawing(const SwizzledLayout& layout) { return drawing_of(layout.layout(), layout); }

static void check_thread_values(const Layout& layout, int64_t elements) {
  if (layout.rank() != 2)
    throw UserError(
        fmt::format("{}: {} modes: wanted (thread, value)", to_string(layout), layout.rank()));
  if (layout.cosize() > elements)
    throw UserError(fmt::format("{} reaches element {}: wanted below {}", to_string(layout),
                                layout.cosize() - 1, elements));
}

static std::string owner(int64_t thread, int64_t value) {
  return fmt::format("T{}V{}", thread, value);
}

Drawing thread_value_drawing(const Layout& layout, int64_t rows, int64_t columns) {
  Drawing drawing = blank_drawing(rows, columns);
  check_thread_values(layout, rows * columns);
  const int64_t threads = layout.mode(0).size();
  std::vector<int64_t> owners(drawing.cells.size());
  for (int64_t i = 0; i < layout.size(); i++) {
    const int64_t element = layout(i);
    if (owners[static_cast<size_t>(element)]++ > 0) continue;
    cell(drawing, element % rows, element / rows) = {owner(i % threads, i / threads), i % threads};
  }
  for (int64_t element = 0; element < rows * columns; element++) {
    const int64_t n = owners[static_cast<size_t>(element)];
    std::string& label = cell(drawing, element % rows, element / rows).label;
    if (n == 0) label = ".";
    if (n > 1) label += fmt::format("+{}", n - 1);
  }
  return drawing;
}

Drawing thread_value_drawing(int64_t rows, int64_t columns, const ElementFunction& thread,
                             const ElementFunction& value) {
  Drawing drawing = blank_drawing(rows, columns);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t column = 0; column < columns; column++) {
      const int64_t t = thread(row, column);
      cell(drawing, row, column) = {owner(t, value(row, column)), t};
    }
  return drawing;
}

}  // namespace tw
