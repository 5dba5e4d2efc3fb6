#pragma once

#include <sys/types.h>
#include <vector>

namespace tw::test {

/// Processes that take all the CPU time they get, for as long as this lives.
class Burners {
 public:
  explicit Burners(int count);
  ~Burners();
  Burners(const Burners&) = delete;
  Burners& operator=(const Burners&) = delete;

 private:
  std::vector<pid_t> pids_;
};

}  // namespace tw::test
