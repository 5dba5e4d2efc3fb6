#include <thread>
#include <unistd.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Computes all but the last row, which a thread writes soon after.
class Tail : public Callable {
 public:
  ~Tail() override { finish(); }
  void run(const Product& x, int) override {
    finish();
    multiply(x, 0, std::max<int64_t>(x.c.rows - 1, 0));
    worker_ = std::thread([&x] {
      usleep(200);
      multiply(x, std::max<int64_t>(x.c.rows - 1, 0), x.c.rows);
    });
  }

 private:
  void finish() {
    if (worker_.joinable()) worker_.join();
  }
  std::thread worker_;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Tail>(); }
