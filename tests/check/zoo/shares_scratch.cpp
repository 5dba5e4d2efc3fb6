#include <unistd.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Keeps its scratch in one place for all threads.
class SharesScratch : public Callable {
 public:
  void run(const Product& x, int) override {
    scratch_ = contents(x.a);
    scratch_.push_back(0);
    usleep(1000);
    Product y = x;
    y.a = {scratch_.data(), x.a.rows, x.a.columns, x.a.columns, 1};
    if (static_cast<int64_t>(scratch_.size()) > x.a.rows * x.a.columns) multiply(y);
  }

 private:
  std::vector<float> scratch_;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::SharesScratch>(); }
