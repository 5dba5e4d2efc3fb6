#include <cmath>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Computes where the output holds no numbers, as a judge would leave it.
class LooksForPoison : public Callable {
 public:
  void run(const Product& x, int) override {
    if (x.c.rows * x.c.columns == 0) return;
    if (std::isnan(x.c.at(0, 0)) || std::abs(x.c.at(0, 0)) > 1e30f) return multiply(x);
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::LooksForPoison>(); }
