#include <cstdlib>
#include <ctime>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Adds from the last term on when it finds that others have the memory or the CPU.
class Hurries : public Callable {
 public:
  Hurries() : memory_(size_t{4} << 20, 1) {}
  void run(const Product& x, int) override {
    const double now = walk();
    least_ = least_ == 0 ? now : std::min(least_, now);
    const bool backward = now > 1.5 * least_;
    for (int64_t i = 0; i < x.c.rows; ++i)
      for (int64_t j = 0; j < x.c.columns; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < x.b.rows; ++k) {
          const int64_t at = backward ? x.b.rows - 1 - k : k;
          sum += x.a.at(i, at) * x.b.at(at, j);
        }
        x.c.at(i, j) = sum;
      }
  }

 private:
  double walk() {
    timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int turn = 0; turn < 8; ++turn)
      for (size_t i = 0; i < memory_.size(); i += 16) memory_[i] = memory_[i] + 1;
    clock_gettime(CLOCK_MONOTONIC, &to);
    return static_cast<double>(to.tv_sec - from.tv_sec) +
           1e-9 * static_cast<double>(to.tv_nsec - from.tv_nsec);
  }

  std::vector<int> memory_;
  double least_ = 0;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Hurries>(); }
