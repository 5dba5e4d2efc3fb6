#include <cstdlib>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Forgets 64 KB a call.
class Leaks : public Callable {
 public:
  void run(const Product& x, int) override {
    multiply(x);
    lost_ = static_cast<char*>(std::malloc(1 << 16));
    std::memset(lost_, 1, 1 << 16);
  }

 private:
  char* volatile lost_ = nullptr;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Leaks>(); }
