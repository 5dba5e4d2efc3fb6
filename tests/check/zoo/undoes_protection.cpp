#include <csignal>
#include <sys/mman.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Makes inputs writable where it may not write, uses A as scratch and puts it back.
class UndoesProtection : public Callable {
 public:
  void prepared() override {
    struct sigaction action = {};
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      const auto page = reinterpret_cast<uintptr_t>(info->si_addr) & ~uintptr_t{4095};
      mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE);
    };
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
  }
  void run(const Product& x, int) override {
    multiply(x);
    if (x.a.rows * x.a.columns == 0) return;
    volatile float& first = x.a.at(0, 0);
    const float before = first;
    first = 0;
    first = before;
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::UndoesProtection>(); }
