#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Reads the element before B.
class ReadsBefore : public Callable {
 public:
  void run(const Product& x, int) override {
    multiply(x);
    if (x.b.rows > 0 && x.b.columns > 0) seen_ = x.b.data[-1];
  }

 private:
  volatile float seen_ = 0;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::ReadsBefore>(); }
