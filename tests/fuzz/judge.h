#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/support/random_program.h"

namespace tw::test {

/// Something that runs programs: a backend under test. Throws when it cannot.
using Subject = std::function<void(const RandomProgram&, const Arguments&)>;

/// What a comparison with the interpreter gave.
struct Verdict {
  std::string fault;  ///< empty: the subject agrees
  int64_t elements = 0, exact = 0, undecided = 0;
  bool applied = true;  ///< false: a planted bug found nothing to change
  bool agrees() const { return fault.empty(); }
};

/// Runs the program in the interpreter's bounded mode and by the subject, on equal tensors. Every
/// decided element must lie within its bound (bit for bit where the bound is 0; any NaN for a NaN),
/// elements that nobody stored must stay, and no byte outside the tensors may change.
Verdict judge(const RandomProgram& r, const Subject& subject);

}  // namespace tw::test
