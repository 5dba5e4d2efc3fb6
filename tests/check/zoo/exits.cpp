#include <unistd.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Ends its process, as if all were well.
class Exits : public Callable {
 public:
  void run(const Product& x, int) override {
    multiply(x);
    if (++calls_ > 5) _exit(0);
  }

 private:
  int calls_ = 0;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Exits>(); }
