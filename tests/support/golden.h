#pragma once

#include <filesystem>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

namespace tw::test {

/// The golden files of one test program: tests/<layer>/golden/NAME. TW_UPDATE_GOLDEN=1
/// (`./runtests --update-golden`) rewrites them from the run; the diff is then read and committed.
class GoldenFolder {
 public:
  GoldenFolder(std::filesystem::path folder, bool update) : folder_(folder), update_(update) {}

  /// Fails, with the differing lines, unless the file NAME holds exactly `text`.
  testing::AssertionResult compare(const std::string& name, const std::string& text);

  /// Files that no compare() named. When updating they are removed and none is left.
  std::vector<std::string> unused() const;

 private:
  std::filesystem::path folder_;
  bool update_;
  std::set<std::string> used_;
};

/// The folder of this program; see tests/support/main.cpp.
GoldenFolder& golden();

/// The first place where two texts part, as lines led by '-' (expected), '+' (actual) or ' '
/// (both).
std::string line_diff(const std::string& expected, const std::string& actual);

}  // namespace tw::test

/// `text` must equal the file golden/NAME beside the test.
#define TW_EXPECT_GOLDEN(name, text) EXPECT_TRUE(::tw::test::golden().compare(name, text))
