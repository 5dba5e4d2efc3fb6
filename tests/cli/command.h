#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

#include "tests/support/shell.h"

namespace tw {

/// Runs `tilewright WORDS` in a shell, in a folder and with a cache of the test's own.
class Command : public testing::Test {
 protected:
  Command() {
    std::string pattern = testing::TempDir() + "tw-cli-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    setenv("TW_CACHE_DIR", (folder_ + "/cache").c_str(), 1);
  }
  ~Command() override { std::filesystem::remove_all(folder_); }

  Ended call(const std::string& words, const std::string& redirections = "2>&1") const {
    return shell("cd '" + folder_ + "' && '" TW_COMMAND "' " + words + " " + redirections);
  }

  void expect(const std::string& words, int code, const std::string& part) const {
    Ended e = call(words);
    EXPECT_EQ(e.code, code) << words << "\n" << e.out;
    EXPECT_NE(e.out.find(part), std::string::npos) << words << "\n" << e.out;
    EXPECT_EQ(e.out.find("terminate called"), std::string::npos);
  }

  std::string read(const std::string& file) const {
    std::ifstream in(folder_ + "/" + file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& file, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + file).parent_path());
    std::ofstream(folder_ + "/" + file, std::ios::binary) << bytes;
  }
  /// A script of a shell, that can be run.
  void program(const std::string& file, const std::string& text) const {
    write(file, "#!/bin/sh\n" + text);
    std::filesystem::permissions(folder_ + "/" + file, std::filesystem::perms::owner_all);
  }

  std::string folder_;
};

}  // namespace tw
