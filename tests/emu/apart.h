#pragma once

#include <cstdint>
#include <string>

#include "tests/emu/pipelines.h"

namespace tw::test {

/// While it lives compiled texts go to a folder of its own: those of mutants are seen once, and a
/// cache that is full of them takes long to look through.
class ScratchCache {
 public:
  ScratchCache();
  ScratchCache(const ScratchCache&) = delete;
  ScratchCache& operator=(const ScratchCache&) = delete;
  ~ScratchCache();

 private:
  std::string folder_, before_;
};

/// What first_fault() says of a text of a kernel, in a process of its own: for texts that do not
/// compile, crash or never end. Time is that process's own, not that of compilers.
Verdict judged_apart(const std::string& kernel, const std::string& text, const std::string& config,
                     uint64_t seeds);

}  // namespace tw::test
