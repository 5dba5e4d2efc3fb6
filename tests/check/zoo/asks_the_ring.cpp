#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Leaves its system calls to the kernel's ring, which no filter of calls sees.
class AsksTheRing : public Callable {
 public:
  void prepared() override {
    io_uring_params how = {};
    syscall(SYS_io_uring_setup, 8, &how);
  }
  void run(const Product& x, int) override { multiply(x); }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::AsksTheRing>(); }
