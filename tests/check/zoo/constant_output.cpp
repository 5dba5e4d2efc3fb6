#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Gives every element the mean of all.
class ConstantOutput : public Callable {
 public:
  void run(const Product& x, int) override {
    multiply(x);
    double sum = 0;
    for (float v : contents(x.c)) sum += v;
    const auto n = static_cast<size_t>(x.c.rows * x.c.columns);
    write(x.c, std::vector<float>(n, static_cast<float>(sum / static_cast<double>(n))));
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::ConstantOutput>(); }
