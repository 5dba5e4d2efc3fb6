#include <set>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Computes a set once and has the answer ever after.
class CachedResult : public Callable {
 public:
  void run(const Product& x, int set) override {
    if (done_.insert(set).second) multiply(x);
  }

 private:
  std::set<int> done_;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::CachedResult>(); }
