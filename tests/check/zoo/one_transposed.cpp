#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Knows A and B transposed or neither, not one of them.
class OneTransposed : public Callable {
 public:
  void run(const Product& x, int) override {
    const auto transposed = [](const Matrix& m) { return m.row == 1 && m.column > 1; };
    if (transposed(x.a) == transposed(x.b)) return multiply(x);
    write(x.c, std::vector<float>(static_cast<size_t>(x.c.rows * x.c.columns)));
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::OneTransposed>(); }
