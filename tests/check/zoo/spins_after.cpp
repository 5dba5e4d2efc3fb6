#include <atomic>
#include <thread>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Leaves a thread that turns for ever.
class Spinner : public Callable {
 public:
  ~Spinner() override {
    ends_ = true;
    spinner_.join();
  }
  void run(const Product& x, int) override { multiply(x); }

 private:
  std::atomic<bool> ends_{false};
  std::thread spinner_{[this] {
    while (!ends_) continue;
  }};
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Spinner>(); }
