#include <map>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Remembers results by the addresses of the operands.
class PointerCache : public Callable {
 public:
  void run(const Product& x, int) override {
    auto [at, fresh] = known_.try_emplace({x.a.data, x.b.data});
    if (fresh) {
      multiply(x);
      at->second = contents(x.c);
    }
    write(x.c, at->second);
  }

 private:
  std::map<std::pair<const float*, const float*>, std::vector<float>> known_;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::PointerCache>(); }
