#include "tw/layout/draw.h"

#include <algorithm>
#include <fmt/format.h>

namespace tw {

static size_t label_width(const Drawing& drawing) {
  size_t width = std::to_string(std::max(drawing.rows, drawing.columns) - 1).size();
  for (const Drawing::Cell& cell : drawing.cells) width = std::max(width, cell.label.size());
  return width;
}

std::string draw(const Drawing& drawing) {
  const size_t width = label_width(drawing), side = std::to_string(drawing.rows - 1).size();
  std::string text = std::string(side, ' ') + " |";
  for (int64_t c = 0; c < drawing.columns; c++) text += fmt::format(" {:>{}}", c, width);
  text += "\n" + std::string(side, '-') + "-+" +
          std::string(static_cast<size_t>(drawing.columns) * (width + 1), '-') + "\n";
  for (int64_t r = 0; r < drawing.rows; r++) {
    text += fmt::format("{:>{}} |", r, side);
    for (int64_t c = 0; c < drawing.columns; c++)
      text += fmt::format(" {:>{}}",
                          drawing.cells[static_cast<size_t>(r * drawing.columns + c)].label, width);
    text += "\n";
  }
  return text;
}

static const char* fill_of(int64_t colour) {
  static constexpr const char* kFills[] = {"#afd8f0", "#f6cfa1", "#bfe5bf", "#f0b8b8",
                                           "#d9c8ec", "#dfd0c4", "#f5c9e4", "#e4e4a5"};
  return kFills[static_cast<uint64_t>(colour) % 8];
}

std::string draw_svg(const Drawing& drawing) {
  constexpr int64_t kHeight = 24, kCharacter = 8, kMargin = 8;
  const int64_t width = kMargin + kCharacter * static_cast<int64_t>(label_width(drawing));
  const int64_t side =
      kMargin + kCharacter * static_cast<int64_t>(std::to_string(drawing.rows - 1).size());
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"monospace\" font-size=\"12\" text-anchor=\"middle\">\n",
      side + width * drawing.columns + 1, kHeight * (drawing.rows + 1) + 1);
  auto label = [&](int64_t x, int64_t w, int64_t y, const std::string& what) {
    text +=
        fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x + w / 2, y + kHeight * 2 / 3, what);
  };
  for (int64_t c = 0; c < drawing.columns; c++)
    label(side + c * width, width, 0, std::to_string(c));
  for (int64_t r = 0; r < drawing.rows; r++) {
    const int64_t y = kHeight * (r + 1);
    label(0, side, y, std::to_string(r));
    for (int64_t c = 0; c < drawing.columns; c++) {
      const Drawing::Cell& cell = drawing.cells[static_cast<size_t>(r * drawing.columns + c)];
      const int64_t x = side + c * width;
      text += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"black\"/>\n", x,
          y, width, kHeight, cell.label == "." ? "white" : fill_of(cell.colour));
      label(x, width, y, cell.label);
    }
  }
  return text + "</svg>\n";
}

}  // namespace tw
