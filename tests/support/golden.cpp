#include "tests/support/golden.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace tw::test {

namespace fs = std::filesystem;

static std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (!text.empty() && text.back() != '\n') lines.push_back("(no newline at the end)");
  return lines;
}

std::string line_diff(const std::string& expected, const std::string& actual) {
  constexpr size_t kContext = 3, kShown = 40;
  std::vector<std::string> a = split_lines(expected), b = split_lines(actual);
  size_t same = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  size_t tail =
      std::mismatch(a.rbegin(), a.rend() - same, b.rbegin(), b.rend() - same).first - a.rbegin();
  size_t first = same - std::min(same, kContext);
  std::ostringstream out;
  out << "line " << same + 1 << ":\n";
  auto print = [&](char mark, const std::vector<std::string>& lines, size_t from, size_t to) {
    for (size_t i = from; i < std::min(to, from + kShown); ++i) {
      out << mark << ' ' << lines[i] << '\n';
    }
    if (to > from + kShown) out << mark << " ... " << to - from - kShown << " lines more\n";
  };
  print(' ', a, first, same);
  print('-', a, same, a.size() - tail);
  print('+', b, same, b.size() - tail);
  print(' ', a, a.size() - tail, std::min(a.size(), a.size() - tail + kContext));
  return out.str();
}

testing::AssertionResult GoldenFolder::compare(const std::string& name, const std::string& text) {
  used_.insert(name);
  const fs::path path = folder_ / name;
  if (update_) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return testing::AssertionSuccess();
  }
  std::ifstream in(path, std::ios::binary);
  std::string expected{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open()) {
    return testing::AssertionFailure()
           << path << " is missing; ./runtests --update-golden would write\n"
           << line_diff("", text);
  }
  if (expected == text) return testing::AssertionSuccess();
  return testing::AssertionFailure() << path << " differs at " << line_diff(expected, text)
                                     << "if this is right: ./runtests --update-golden";
}

std::vector<std::string> GoldenFolder::unused() const {
  std::vector<std::string> found;
  if (!fs::exists(folder_)) return found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder_)) {
    std::string name = fs::relative(entry.path(), folder_).string();
    if (entry.is_regular_file() && !used_.contains(name)) found.push_back(name);
  }
  if (update_) {
    for (const std::string& name : found) fs::remove(folder_ / name);
    found.clear();
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tw::test
