#include "tests/passes/run_pass.h"

#include "tw/ir/verify.h"

namespace tw::test {

Program run_pass(decltype(Pass::run) pass, Program p, const std::string& machine) {
  verify(p, "test");
  const Mapping mapping;
  const Specialisation specialisation;
  pass(p, {machine_named(machine), mapping, specialisation});
  verify(p, "pass");
  return p;
}

}  // namespace tw::test
