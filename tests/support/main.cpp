#include <cstdlib>
#include <iostream>
#include <unistd.h>

#include "tests/support/golden.h"

namespace tw::test {

GoldenFolder& golden() {
  static GoldenFolder folder(TW_TEST_DIR "/golden", std::getenv("TW_UPDATE_GOLDEN") != nullptr);
  return folder;
}

/// Only a whole, green run can tell that nothing uses a file.
static bool ran_everything() {
  const testing::UnitTest& run = *testing::UnitTest::GetInstance();
  return run.Passed() && GTEST_FLAG_GET(filter) == "*" && run.test_to_run_count() > 0 &&
         std::getenv("GTEST_TOTAL_SHARDS") == nullptr && !GTEST_FLAG_GET(list_tests);
}

}  // namespace tw::test

/// The main of every test program: fails too when a golden file is left over.
int main(int argc, char** argv) {
  // Tools of Python packages, NVRTC for one, where no other environment is in use.
  setenv("VIRTUAL_ENV", TW_TEST_DIR "/../../.venv", 0);
  // A log holds what failed, for it is cut where it is long.
  if (!isatty(STDOUT_FILENO)) GTEST_FLAG_SET(brief, true);
  testing::InitGoogleTest(&argc, argv);
  int status = RUN_ALL_TESTS();
  if (!tw::test::ran_everything()) return status;
  for (const std::string& name : tw::test::golden().unused()) {
    std::cerr << TW_TEST_DIR "/golden/" << name << ": no test uses this golden file\n";
    status = 1;
  }
  return status;
}
