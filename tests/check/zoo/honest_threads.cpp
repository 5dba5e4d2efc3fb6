#include <thread>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Threads of its own, all joined when it returns.
class Threads : public Callable {
 public:
  void run(const Product& x, int) override {
    const int64_t middle = threads > 1 ? x.c.rows / 2 : x.c.rows;
    std::thread other([&] { multiply(x, middle, x.c.rows); });
    multiply(x, 0, middle);
    other.join();
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Threads>(); }
