#include <algorithm>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/layout/algebra.h"

namespace tw {
namespace {

/// Indices of `a` are numbers whose digits are the coordinates in its modes. a(x + y) is
/// a(x) + a(y) when no digit of x + y carries, so R = a(b) is found mode by mode, as long as the
/// largest digits of all modes of b together stay below the shapes of a.
class Composition {
 public:
  Composition(const Layout& a, const Layout& b)
      : a_(a), b_(b), modes_(flatten(coalesce(a))), largest_(modes_.size(), 0) {}

  Layout run() {
    if (b_.cosize() > a_.size())
      throw UserError(
          fmt::format("composition: {} reaches index {}: wanted below {}, the size of {}",
                      to_string(b_), b_.cosize() - 1, a_.size(), to_string(a_)));
    return of(b_);
  }

 private:
  Layout of(const Layout& b) {
    if (!b.is_tuple()) return of_mode(b);
    std::vector<Layout> modes;
    for (int i = 0; i < b.rank(); i++) modes.push_back(of(b.mode(i)));
    return make_layout(std::move(modes));
  }

  Layout of_mode(const Layout& b) {
    int64_t rest = b.size(), step = b.stride().value();
    if (step == 0) return b;
    std::vector<ShapeStride> result;
    while (rest > 1) {
      const int64_t run = std::min(steps_without_carry(step), rest);
      if (rest % run != 0) refuse(b);
      result.push_back({run, a_(step)});
      add_digits(step, run, b);
      rest /= run;
      if (rest > 1) step *= run;
    }
    return unflatten(result);
  }

  int64_t steps_without_carry(int64_t step) const {
    int64_t run = INT64_MAX;
    for (const ShapeStride& mode : modes_) {
      const int64_t digit = step % mode.shape;
      if (digit > 0) run = std::min(run, (mode.shape - 1) / digit + 1);
      step /= mode.shape;
    }
    return run;
  }

  void add_digits(int64_t step, int64_t run, const Layout& b) {
    for (size_t i = 0; i < modes_.size(); i++) {
      const int64_t shape = modes_[i].shape, digit = (run - 1) * (step % shape);
      if (digit >= shape - largest_[i]) refuse(b);
      largest_[i] += digit;
      step /= shape;
    }
  }

  [[noreturn]] void refuse(const Layout& b) {
    throw UserError(fmt::format("composition: mode {} of {} does not divide the modes of {}",
                                to_string(b), to_string(b_), to_string(a_)));
  }

  const Layout &a_, &b_;
  const std::vector<ShapeStride> modes_;
  std::vector<int64_t> largest_;  // digits reached by the modes of b so far
};

}  // namespace

Layout composition(const Layout& a, const Layout& b) { return Composition(a, b).run(); }

}  // namespace tw
