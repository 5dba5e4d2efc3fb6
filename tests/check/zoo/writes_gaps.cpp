#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Writes whole rows, gaps between them too.
class WritesGaps : public Callable {
 public:
  void run(const Product& x, int) override {
    multiply(x);
    for (int64_t i = 0; i + 1 < x.c.rows; ++i)
      if (x.c.column == 1)
        for (int64_t j = x.c.columns; j < x.c.row; ++j) x.c.at(i, j) = 0;
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::WritesGaps>(); }
