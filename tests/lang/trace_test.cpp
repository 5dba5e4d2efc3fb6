#include "tw/lang/trace.h"

#include <gtest/gtest.h>

#include "tw/ir/print.h"
#include "tw/passes/canonicalize.h"

#include "tests/lang/programs.h"
#include "tests/support/golden.h"

namespace tw {

// The same files under g++ and clang++: this is the proof that they trace the same bytes.
TEST(Trace, ProgramsAreTheGoldenTexts) {
  for (auto& [name, p] : test::programs()) {
    canonicalize(p);
    TW_EXPECT_GOLDEN(name + ".tw", print(p));
  }
}

TEST(Trace, LinesAreTheUsers) {
  for (auto& [name, p] : test::programs()) {
    walk(p, [&, &name = name](const Op& op) {
      EXPECT_TRUE(std::string(op.at.file).ends_with("tests/lang/programs.cpp"))
          << name << ": " << info(op.code).name << " at " << op.at.file;
    });
  }
}

}  // namespace tw
