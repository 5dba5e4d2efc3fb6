#include <cmath>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Takes operands for fractions in (-1, 1) and computes on integers.
class FixedPoint : public Callable {
 public:
  void run(const Product& x, int) override {
    Copy copy(x);
    for (auto* operand : {&copy.a, &copy.b})
      for (float& v : *operand) v = std::nearbyint(std::clamp(v, -1.0f, 1.0f) * 0x1p23f) * 0x1p-23f;
    multiply(copy.x);
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::FixedPoint>(); }
