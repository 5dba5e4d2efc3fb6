#include "tw/tensor/message.h"

#include <cstdio>
#include <fmt/ranges.h>

namespace tw {
namespace {

/// The coordinates of a row-major element number along the axes of the shape.
std::vector<int64_t> coordinates(std::span<const int64_t> shape, int64_t element) {
  std::vector<int64_t> at(shape.size());
  for (size_t k = shape.size(); k-- > 0; element /= shape[k]) at[k] = element % shape[k];
  return at;
}

}  // namespace

UserError failed_check(const Message& m, std::span<const int64_t> instance, int64_t element) {
  const std::string where =
      m.shape.empty()
          ? ""
          : fmt::format("at element [{}] of ", fmt::join(coordinates(m.shape, element), ", "));
  return UserError(m.at, fmt::format("check failed: {}, {}instance ({})", m.text,
                                     m.shape.empty() ? "in " : where, fmt::join(instance, ", ")));
}

std::string element_text(DType t, double f, int64_t i) {
  if (t == b1) return i != 0 ? "true" : "false";
  if (t == u64) return fmt::format("{}", static_cast<uint64_t>(i));
  if (is_int(t)) return fmt::format("{}", i);
  return t == f64 ? fmt::format("{}", f) : fmt::format("{}", static_cast<float>(f));
}

std::string printed(const Message& m, std::span<const int64_t> instance,
                    const std::function<std::string(int64_t)>& element) {
  const int64_t columns = m.shape.empty() ? 1 : m.shape.back();
  int64_t count = 1;
  for (const int64_t extent : m.shape) count *= extent;
  std::string lines;
  for (int64_t first = 0; first < count; first += columns) {
    std::string row;
    if (m.shape.size() > 1) {
      const std::vector<int64_t> at =
          coordinates(std::span(m.shape).first(m.shape.size() - 1), first / columns);
      row = fmt::format(" [{}, :]", fmt::join(at, ", "));
    }
    lines += fmt::format("{} ({}){} =", m.text, fmt::join(instance, ", "), row);
    for (int64_t e = first; e < first + columns; ++e) lines += " " + element(e);
    lines += "\n";
  }
  return lines;
}

void print_lines(const PrintLines& print, const std::string& lines) {
  if (print) return print(lines);
  std::fwrite(lines.data(), 1, lines.size(), stdout);
  std::fflush(stdout);
}

}  // namespace tw
