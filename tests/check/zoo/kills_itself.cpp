#include <csignal>
#include <unistd.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Ends its process by a signal.
class KillsItself : public Callable {
 public:
  void run(const Product& x, int) override {
    multiply(x);
    if (++calls_ > 5) kill(getpid(), SIGKILL);
  }

 private:
  int calls_ = 0;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::KillsItself>(); }
