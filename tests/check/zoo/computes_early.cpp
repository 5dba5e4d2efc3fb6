#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Does all the work when it is made ready.
class ComputesEarly : public Callable {
 public:
  void prepared() override {
    for (const Product& x : sets) multiply(x);
  }
  void run(const Product&, int) override {}
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::ComputesEarly>(); }
