#include <sched.h>
#include <thread>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Takes every CPU there is for a task of one thread.
class TakesMoreThreads : public Callable {
 public:
  void run(const Product& x, int) override {
    const int64_t middle = x.c.rows / 2;
    std::thread other([&] {
      cpu_set_t all;
      std::memset(&all, 0xff, sizeof all);
      sched_setaffinity(0, sizeof all, &all);
      multiply(x, middle, x.c.rows);
    });
    multiply(x, 0, middle);
    other.join();
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::TakesMoreThreads>(); }
