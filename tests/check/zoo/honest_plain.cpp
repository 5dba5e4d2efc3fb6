#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Plain loops.
class Plain : public Callable {
 public:
  void run(const Product& x, int) override { multiply(x); }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Plain>(); }
