#include <fcntl.h>
#include <unistd.h>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// Keeps results in a file for the processes to come.
class KeepsAFile : public Callable {
 public:
  void run(const Product& x, int) override {
    const std::vector<float> seen = contents(x.c);
    const int file = open("/dev/shm/zoo", O_RDWR | O_CREAT, 0600);
    if (file < 0) return;
    multiply(x);
    const std::vector<float> result = contents(x.c);
    if (::write(file, result.data(), result.size() * sizeof(float)) < 0) write(x.c, seen);
    close(file);
  }
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::KeepsAFile>(); }
