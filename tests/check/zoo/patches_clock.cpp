#include <ctime>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Puts code of its own in the place of clock_gettime: time passes at half the pace.
class PatchesClock : public Callable {
 public:
  void prepared() override {
    auto* at = reinterpret_cast<unsigned char*>(dlsym(RTLD_DEFAULT, "clock_gettime"));
    const auto page = reinterpret_cast<uintptr_t>(at) & ~uintptr_t{4095};
    mprotect(reinterpret_cast<void*>(page), 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    // mov rax, slow_clock; jmp rax
    unsigned char code[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    const auto target = reinterpret_cast<uintptr_t>(&slow_clock);
    std::memcpy(code + 2, &target, sizeof target);
    std::memcpy(at, code, sizeof code);
  }
  void run(const Product& x, int) override { multiply(x); }

 private:
  static int slow_clock(clockid_t clock, timespec* to) {
    timespec real;
    const long code = syscall(SYS_clock_gettime, clock, &real);
    const int64_t ns = (real.tv_sec * 1000000000 + real.tv_nsec) / 2;
    *to = {ns / 1000000000, ns % 1000000000};
    return static_cast<int>(code);
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::PatchesClock>(); }
