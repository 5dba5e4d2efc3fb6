#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Is right where sizes are multiples of eight, and leaves the rest.
class DefaultShapeOnly : public Callable {
 public:
  void run(const Product& x, int) override {
    Product y = x;
    y.a.rows -= x.a.rows % 8;
    y.b.columns -= x.b.columns % 8;
    multiply(y);
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::DefaultShapeOnly>(); }
