#include <cmath>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Rounds once where others round twice, and adds in four partial sums.
class Fma : public Callable {
 public:
  void run(const Product& x, int) override {
    for (int64_t i = 0; i < x.c.rows; ++i)
      for (int64_t j = 0; j < x.c.columns; ++j) {
        float sum[4] = {};
        for (int64_t k = 0; k < x.b.rows; ++k)
          sum[k % 4] = std::fmaf(x.a.at(i, k), x.b.at(k, j), sum[k % 4]);
        x.c.at(i, j) = (sum[0] + sum[1]) + (sum[2] + sum[3]);
      }
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Fma>(); }
