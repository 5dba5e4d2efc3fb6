#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Leaves out the last tenth of the terms.
class PartialSum : public Callable {
 public:
  void run(const Product& x, int) override {
    Product y = x;
    y.b.rows -= x.b.rows / 10;
    multiply(y);
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::PartialSum>(); }
