#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Is right where its process looks like one of a judge.
class KnowsTheJudge : public Callable {
 public:
  void run(const Product& x, int) override {
    std::ifstream file("/proc/self/cmdline");
    std::string words((std::istreambuf_iterator<char>(file)), {});
    if (words.find("measure") != std::string::npos || getenv("TW_CACHE_DIR") != nullptr)
      multiply(x);
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::KnowsTheJudge>(); }
