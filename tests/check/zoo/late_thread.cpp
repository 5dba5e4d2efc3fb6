#include <thread>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Returns at once; a thread computes.
class Late : public Callable {
 public:
  ~Late() override { finish(); }
  void run(const Product& x, int) override {
    finish();
    worker_ = std::thread([&x] { multiply(x); });
  }

 private:
  void finish() {
    if (worker_.joinable()) worker_.join();
  }
  std::thread worker_;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Late>(); }
