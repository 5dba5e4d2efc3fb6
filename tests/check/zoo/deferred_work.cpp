#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Notes what to do and does it in the next call.
class DeferredWork : public Callable {
 public:
  void run(const Product& x, int) override {
    if (due_ != nullptr) multiply(*due_);
    due_ = &x;
  }

 private:
  const Product* due_ = nullptr;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::DeferredWork>(); }
