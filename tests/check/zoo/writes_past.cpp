#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Writes the element after the end of C.
class WritesPast : public Callable {
 public:
  void run(const Product& x, int) override {
    multiply(x);
    if (x.c.rows > 0 && x.c.columns > 0) *(&x.c.at(x.c.rows - 1, x.c.columns - 1) + 1) = 0;
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::WritesPast>(); }
