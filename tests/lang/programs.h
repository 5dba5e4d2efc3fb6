#pragma once

#include <string>
#include <vector>

#include "tw/ir/program.h"

namespace tw::test {

struct NamedProgram {
  std::string name;
  Program program;
};

/// The kernels that the language is shown with, and small ones for what those do not use.
std::vector<NamedProgram> programs();

}  // namespace tw::test
