#include <cmath>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Writes 0 where the result is no number.
class NanToZero : public Callable {
 public:
  void run(const Product& x, int) override {
    multiply(x);
    for (int64_t i = 0; i < x.c.rows; ++i)
      for (int64_t j = 0; j < x.c.columns; ++j)
        if (std::isnan(x.c.at(i, j))) x.c.at(i, j) = 0;
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::NanToZero>(); }
