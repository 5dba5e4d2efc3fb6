#include <sys/socket.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Calls for help from the network.
class AsksAnother : public Callable {
 public:
  void run(const Product& x, int) override {
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0) multiply(x);
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::AsksAnother>(); }
