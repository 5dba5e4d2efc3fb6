#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Turns subnormals off, for its caller, too.
class FlushesSubnormals : public Callable {
 public:
  void run(const Product& x, int) override {
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
    multiply(x);
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::FlushesSubnormals>(); }
