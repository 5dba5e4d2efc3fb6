#include <csignal>
#include <unistd.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Sends its parent to sleep.
class StopsJudge : public Callable {
 public:
  void run(const Product& x, int) override {
    kill(getppid(), SIGSTOP);
    multiply(x);
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::StopsJudge>(); }
