#include <unistd.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Sums in double, and dawdles.
class Slow : public Callable {
 public:
  void run(const Product& x, int) override {
    for (int64_t i = 0; i < x.c.rows; ++i)
      for (int64_t j = 0; j < x.c.columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < x.b.rows; ++k) sum += double{x.a.at(i, k)} * x.b.at(k, j);
        x.c.at(i, j) = static_cast<float>(sum);
      }
    usleep(200);
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Slow>(); }
