#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Is right in the first ten calls only.
class WrongAfterTen : public Callable {
 public:
  void run(const Product& x, int) override {
    if (++calls_ <= 10) multiply(x);
  }

 private:
  int calls_ = 0;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::WrongAfterTen>(); }
