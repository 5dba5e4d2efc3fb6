#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Uses A as scratch and puts it back.
class BorrowsInput : public Callable {
 public:
  void run(const Product& x, int) override {
    for (int64_t i = 0; i < x.a.rows; ++i)
      for (int64_t j = 0; j < x.a.columns; ++j) x.a.at(i, j) = -x.a.at(i, j);
    multiply(x);
    for (int64_t i = 0; i < x.a.rows; ++i)
      for (int64_t j = 0; j < x.a.columns; ++j) x.a.at(i, j) = -x.a.at(i, j);
    for (int64_t i = 0; i < x.c.rows; ++i)
      for (int64_t j = 0; j < x.c.columns; ++j) x.c.at(i, j) = 0.0f - x.c.at(i, j);
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::BorrowsInput>(); }
