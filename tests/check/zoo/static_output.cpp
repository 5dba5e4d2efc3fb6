#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Hands out the result of the call before, and computes the next.
class StaticOutput : public Callable {
 public:
  void run(const Product& x, int) override {
    Product y = x;
    std::vector<float> next(static_cast<size_t>(x.c.rows * x.c.columns) + 1);
    y.c = {next.data(), x.c.rows, x.c.columns, x.c.columns, 1};
    multiply(y);
    if (last_.size() == next.size())
      write(x.c, last_);
    else
      write(x.c, next);
    last_ = next;
  }

 private:
  std::vector<float> last_;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::StaticOutput>(); }
