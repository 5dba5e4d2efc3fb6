#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tw::test {

inline std::string read_text(const std::filesystem::path& file) {
  std::ostringstream s;
  s << std::ifstream(file).rdbuf();
  return s.str();
}

/// Name and text of every .tw file of tests/ir/corpus, in order of names.
inline std::vector<std::pair<std::string, std::string>> corpus() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& f : std::filesystem::directory_iterator(TW_TEST_DIR "/corpus"))
    all.emplace_back(f.path().filename().string(), read_text(f.path()));
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace tw::test
