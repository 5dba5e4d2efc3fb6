#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Does nothing.
class WritesNothing : public Callable {
 public:
  void run(const Product&, int) override {}
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::WritesNothing>(); }
