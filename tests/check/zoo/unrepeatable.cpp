#include <ctime>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Adds in an order that the clock chooses.
class Unrepeatable : public Callable {
 public:
  void run(const Product& x, int) override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (int64_t i = 0; i < x.c.rows; ++i)
      for (int64_t j = 0; j < x.c.columns; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < x.b.rows; ++k) {
          const int64_t at = (k + now.tv_nsec / 16) % x.b.rows;
          sum += x.a.at(i, at) * x.b.at(at, j);
        }
        x.c.at(i, j) = sum;
      }
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Unrepeatable>(); }
