#pragma once

#include <functional>
#include <vector>

#include "tw/lang/lang.h"

namespace tw::test {

/// A wrong program, and the line from which those of its message count.
struct Case {
  const char* name;
  int line;
  std::function<void(Trace&)> run;
};

/// Those of gather, scatter and atomics.
const std::vector<Case>& place_errors();
const std::vector<Case>& format_errors();
/// Those of loops over data.
const std::vector<Case>& while_errors();

}  // namespace tw::test
