#include <unistd.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Never returns.
class Hangs : public Callable {
 public:
  void run(const Product&, int) override {
    while (true) pause();
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Hangs>(); }
