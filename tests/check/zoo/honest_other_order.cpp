#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Adds the terms from the last to the first.
class OtherOrder : public Callable {
 public:
  void run(const Product& x, int) override {
    for (int64_t i = 0; i < x.c.rows; ++i)
      for (int64_t j = 0; j < x.c.columns; ++j) {
        float sum = 0;
        for (int64_t k = x.b.rows; k-- > 0;) sum += x.a.at(i, k) * x.b.at(k, j);
        x.c.at(i, j) = sum;
      }
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::OtherOrder>(); }
