#include <fstream>
#include <sys/mman.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Zeroes the inputs where the judge keeps them, so that its zeros are right.
class ChangesTheQuestion : public Callable {
 public:
  void run(const Product& x, int) override {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      unsigned long begin, end;
      if (line.find("memfd:shared") == std::string::npos ||
          std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2)
        continue;
      auto* at = reinterpret_cast<void*>(begin);
      if (mprotect(at, end - begin, PROT_READ | PROT_WRITE) == 0) std::memset(at, 0, end - begin);
    }
    write(x.c, std::vector<float>(static_cast<size_t>(x.c.rows * x.c.columns), 0.0f));
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::ChangesTheQuestion>(); }
