#include <charconv>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/layout/layout.h"

namespace tw {
namespace {

constexpr int kMaxDepthOfTuples = 64;

class LayoutText {
 public:
  explicit LayoutText(const std::string& text) : text_(text) {}

  IntTuple tuple(int depth = 0) {
    if (!take('(')) return integer();
    if (depth == kMaxDepthOfTuples) fail("fewer parentheses inside each other");
    std::vector<IntTuple> modes;
    do modes.push_back(tuple(depth + 1));
    while (take(','));
    expect(')');
    return IntTuple::of(std::move(modes));
  }

  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}'", c));
  }

  void end() {
    skip_spaces();
    if (at_ != text_.size()) fail("the end");
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') at_++;
  }

  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }

  int64_t integer() {
    skip_spaces();
    int64_t value = 0;
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    const auto [next, error] = std::from_chars(begin, end, value);
    if (error == std::errc::result_out_of_range) fail("an integer of 64 bits");
    if (error != std::errc()) fail("an integer or '('");
    at_ += static_cast<size_t>(next - begin);
    return value;
  }

  [[noreturn]] void fail(const std::string& wanted) {
    throw UserError(fmt::format("layout '{}': wanted {} at offset {}", text_, wanted, at_));
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

std::string to_string(const Layout& layout) {
  return to_string(layout.shape()) + ":" + to_string(layout.stride());
}

Layout parse_layout(const std::string& text) {
  LayoutText in(text);
  const IntTuple shape = in.tuple();
  in.expect(':');
  const IntTuple stride = in.tuple();
  in.end();
  return Layout(shape, stride);
}

}  // namespace tw
