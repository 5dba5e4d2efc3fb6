#include <mutex>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Makes what it needs in the first call.
class Lazy : public Callable {
 public:
  void run(const Product& x, int) override {
    std::call_once(once_, [&] { table_.assign(1 << 20, 1.0f); });
    multiply(x);
  }

 private:
  std::once_flag once_;
  std::vector<float> table_;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Lazy>(); }
