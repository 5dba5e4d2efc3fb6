#include <cmath>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Rounds its operands to ten bits, as tensor cores do.
class InTf32 : public Callable {
 public:
  void run(const Product& x, int) override {
    Copy copy(x);
    for (auto* operand : {&copy.a, &copy.b})
      for (float& v : *operand) v = shortened(v);
    multiply(copy.x);
  }

 private:
  static float shortened(float v) {
    if (!std::isfinite(v)) return v;
    uint32_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    bits = (bits + 0x1000) & 0xffffe000;
    std::memcpy(&v, &bits, sizeof bits);
    return v;
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::InTf32>(); }
