#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "tw/base/error.h"
#include "tw/num/dtype.h"

namespace tw {

/// What a check or print of a program says, and of what kind of tile.
struct Message {
  SourceLoc at;
  std::string text;
  bool check = false;
  DType dtype = b1;
  std::vector<int64_t> shape = {};
};

/// Where text of prints goes: whole lines, one call a print. Calls of one launch do not overlap.
using PrintLines = std::function<void(std::string_view)>;

/// At the user's line: "check failed: MESSAGE, at element [1, 3] of instance (0, 2)".
UserError failed_check(const Message& m, std::span<const int64_t> instance, int64_t element);

/// "LABEL (0, 2) [1, :] = 3 4 5": a line for each row of the tile, `element` gives the text of one
/// by its row-major number.
std::string printed(const Message& m, std::span<const int64_t> instance,
                    const std::function<std::string(int64_t)>& element);

/// Text of a number of that type, which a double or an int64 (u64: its bits) holds.
std::string element_text(DType t, double f, int64_t i);

/// Lines to `print`, to standard output where it is empty.
void print_lines(const PrintLines& print, const std::string& lines);

}  // namespace tw
