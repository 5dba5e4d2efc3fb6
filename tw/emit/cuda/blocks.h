#pragma once

#include <fmt/format.h>
#include <string>
#include <vector>

#include "tw/emit/cpu/writer.h"

namespace tw::cuda {

/// Loops and conditions that are closed together.
class Blocks {
 public:
  explicit Blocks(cpu::Writer& out) : out_(out) {}
  ~Blocks() {
    for (; opened_ > 0; --opened_) out_.close();
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  /// A loop that is unrolled, over a digit from `first` on; none where that is 0 only.
  std::string loop(const std::string& name, int64_t first, int64_t count) {
    if (count == 1) return "0";
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int {0} = {1}; {0} < {2}; ++{0}) {{", name, first, count));
    ++opened_;
    return name;
  }
  /// Statements that hold where some of the numbers is not 0.
  bool when_any(const std::vector<std::string>& numbers) {
    std::string text;
    for (const std::string& n : numbers) {
      if (n != "0") text += fmt::format("{}{} != 0", text.empty() ? "" : " || ", n);
    }
    if (text.empty()) return false;
    when(text);
    return true;
  }
  void when(const std::string& condition) {
    out_.open(fmt::format("if ({}) {{", condition));
    ++opened_;
  }
  void otherwise() {
    out_.close("} else {");
    out_.deeper();
  }

 private:
  cpu::Writer& out_;
  int opened_ = 0;
};

}  // namespace tw::cuda
