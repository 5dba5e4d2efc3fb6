#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Refuses all but contiguous matrices.
class Choosy : public Callable {
 public:
  void prepared() override {
    for (const Product& x : sets)
      for (const Matrix& m : {x.a, x.b, x.c})
        if (m.column != 1 || m.row != m.columns) throw std::runtime_error("only contiguous");
  }
  void run(const Product& x, int) override { multiply(x); }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Choosy>(); }
