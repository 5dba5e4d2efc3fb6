#include "tests/support/golden.h"

#include <fstream>

namespace tw::test {

namespace fs = std::filesystem;

class Golden : public testing::Test {
 protected:
  Golden() { fs::create_directories(folder_); }
  ~Golden() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }

  fs::path folder_ = fs::path(testing::TempDir()) / ("golden" + std::to_string(getpid()));
  GoldenFolder golden_{folder_, false};
};

TEST_F(Golden, EqualTextPasses) {
  write("a.tw", "one\ntwo\n");
  EXPECT_TRUE(golden_.compare("a.tw", "one\ntwo\n"));
}

TEST_F(Golden, AnyOtherByteFailsAndShowsWhere) {
  write("a.tw", "1\n2\n3\n4\n5\n6\n");
  testing::AssertionResult result = golden_.compare("a.tw", "1\n2\n3\n4\nfive\n6\n");
  EXPECT_FALSE(result);
  EXPECT_NE(std::string(result.message()).find("line 5:\n  2\n  3\n  4\n- 5\n+ five\n  6\n"),
            std::string::npos)
      << result.message();
  EXPECT_FALSE(golden_.compare("a.tw", "1\n2\n3\n4\n5\n6"));
  EXPECT_FALSE(golden_.compare("a.tw", "1\n2\n3\n4\n5\n6\n7\n"));
  EXPECT_FALSE(golden_.compare("a.tw", ""));
}

TEST_F(Golden, MissingFileFails) {
  testing::AssertionResult result = golden_.compare("gone.tw", "text\n");
  EXPECT_FALSE(result);
  EXPECT_NE(std::string(result.message()).find("is missing"), std::string::npos);
}

TEST_F(Golden, UnusedFilesAreFound) {
  write("a.tw", "a");
  write("b.tw", "b");
  EXPECT_TRUE(golden_.compare("a.tw", "a"));
  EXPECT_EQ(golden_.unused(), std::vector<std::string>{"b.tw"});
}

TEST_F(Golden, UpdateWritesAndRemoves) {
  write("old.tw", "old");
  GoldenFolder update(folder_, true);
  EXPECT_TRUE(update.compare("sub/new.tw", "new\n"));
  EXPECT_TRUE(update.unused().empty());
  EXPECT_FALSE(fs::exists(folder_ / "old.tw"));
  EXPECT_TRUE(golden_.compare("sub/new.tw", "new\n"));
}

}  // namespace tw::test
