#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Reads the element after the end of A.
class ReadsPast : public Callable {
 public:
  void run(const Product& x, int) override {
    multiply(x);
    if (x.a.rows > 0 && x.a.columns > 0) seen_ = *(&x.a.at(x.a.rows - 1, x.a.columns - 1) + 1);
  }

 private:
  volatile float seen_ = 0;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::ReadsPast>(); }
