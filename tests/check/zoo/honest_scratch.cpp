#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Packs its operands into memory of its own.
class Scratch : public Callable {
 public:
  void run(const Product& x, int) override { multiply(Copy(x).x); }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Scratch>(); }
