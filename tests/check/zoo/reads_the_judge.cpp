#include <fcntl.h>
#include <unistd.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Looks for the answer in the memory of its parent.
class ReadsTheJudge : public Callable {
 public:
  void run(const Product& x, int) override {
    const std::string path = "/proc/" + std::to_string(getppid()) + "/mem";
    // Who can open it finds the answer: here that is as good as computing it.
    if (open(path.c_str(), O_RDONLY) >= 0) multiply(x);
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::ReadsTheJudge>(); }
