#include <csignal>
#include <thread>
#include <unistd.h>

#include "tests/zoo/species.h"

namespace tw::zoo {

namespace {

class Exits : public Callable {
  void run(const Product&, int, const cuda::Stream&) override { _exit(0); }
};

class KillsItself : public Callable {
  void run(const Product&, int, const cuda::Stream&) override { raise(SIGKILL); }
};

/// Its kernel ends long after the judge's patience.
class Hangs : public Callable {
  void run(const Product&, int, const cuda::Stream& s) override {
    constexpr double kPatience = 300;
    hand->spin(kPatience, s);
  }
};

class SpinsAfter : public Callable {
 public:
  ~SpinsAfter() override { spinner_.request_stop(); }

 private:
  void run(const Product& x, int, const cuda::Stream& s) override {
    hand->multiply(x, s);
    if (!spinner_.joinable())
      spinner_ = std::jthread([](const std::stop_token& stop) {
        while (!stop.stop_requested()) asm volatile("");
      });
  }
  std::jthread spinner_;
};

}  // namespace

std::vector<Species> rude() {
  return {
      {"exits", "Ends its process, as if all were well.", "its process ended with status 0",
       made<Exits>},
      {"kills_itself", "Ends its process by a signal.", "its process was ended by signal 9",
       made<KillsItself>},
      {"hangs", "Its kernel runs for five minutes.", "no answer within", made<Hangs>},
      {"spins_after", "Leaves a thread of the host that turns for ever.",
       "of a CPU busy when no call is under way", made<SpinsAfter>},
  };
}

}  // namespace tw::zoo
