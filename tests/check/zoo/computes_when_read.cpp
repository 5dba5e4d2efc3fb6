#include <csignal>
#include <sys/mman.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Locks its outputs and computes when somebody looks at them.
class ComputesWhenRead : public Callable {
 public:
  void prepared() override {
    of_all = this;
    struct sigaction action = {};
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      const auto page = reinterpret_cast<uintptr_t>(info->si_addr) & ~uintptr_t{4095};
      mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE);
      multiply(of_all->asked);
    };
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
  }
  void run(const Product& x, int) override {
    asked = x;
    const auto first = reinterpret_cast<uintptr_t>(x.c.data) & ~uintptr_t{4095};
    // Small ones share their pages with others.
    if (x.c.rows * x.c.columns * 4 < 8192)
      multiply(x);
    else
      mprotect(reinterpret_cast<void*>(first + 4096), 4096, PROT_NONE);
  }

 private:
  static inline ComputesWhenRead* of_all = nullptr;
  Product asked;
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::ComputesWhenRead>(); }
