#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

#include "tests/emu/apart.h"

namespace tw::test {
namespace {

constexpr uint64_t kSeedsOfMutant = 8;

/// A change of a kernel's text; texts/mutants.txt says what the words mean.
struct Change {
  std::string what, kernel, config, verdict;
  struct Part {
    std::string gone, come;
  };
  std::vector<Part> parts;
};

void add_line(std::string& to, bool first, const std::string& line) {
  to += (first ? "" : "\n") + line;
}

std::vector<Change> all_changes() {
  std::ifstream in(TW_TEST_DIR "/texts/mutants.txt");
  std::vector<Change> all;
  std::string line;
  bool first[2] = {true, true};  // of the lines that go, and come
  while (std::getline(in, line)) {
    if (line.starts_with("# ")) continue;
    if (line.starts_with("= ")) {
      Change c{.what = line.substr(2), .kernel = "", .config = "", .verdict = "", .parts = {}};
      std::getline(in, line);
      c.kernel = line.substr(0, line.find(' '));
      c.config = line.substr(line.find(' ') + 1);
      std::getline(in, c.verdict);
      all.push_back(c);
    } else if (line == "&") {
      all.back().parts.push_back({});
      first[0] = first[1] = true;
    } else {
      Change::Part& part = all.back().parts.back();
      const bool comes = line[0] == '+';
      add_line(comes ? part.come : part.gone, std::exchange(first[comes ? 1 : 0], false),
               line.substr(2));
    }
  }
  return all;
}

std::string changed_text(const Change& c) {
  std::string text = kernel_text(c.kernel);
  for (const Change::Part& part : c.parts) {
    const size_t at = text.find(part.gone);
    if (at == std::string::npos || text.find(part.gone, at + 1) != std::string::npos)
      throw std::runtime_error(c.what + ": the text does not have once: " + part.gone);
    text.replace(at, part.gone.size(), part.come);
  }
  return text;
}

std::string name_of(std::string what) {
  for (char& c : what) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return what;
}

/// One of so many is tried; all where TW_EMU_MUTANTS is 1.
size_t one_of() {
  const char* text = std::getenv("TW_EMU_MUTANTS");
  return text != nullptr ? std::strtoul(text, nullptr, 10) : 6;
}

class PipelineMutants : public testing::TestWithParam<size_t> {
 public:
  static void TearDownTestSuite() {
    std::cout << effective << " effective mutants, " << caught << " caught; " << legal
              << " legal changes, " << accepted << " accepted" << std::endl;
  }

 protected:
  static inline int effective = 0, caught = 0, legal = 0, accepted = 0;
};

TEST_P(PipelineMutants, HaveTheirVerdict) {
  const Change c = all_changes()[GetParam()];
  const ScratchCache scratch;
  const Verdict v = judged_apart(c.kernel, changed_text(c), c.config, kSeedsOfMutant);
  std::cout << "mutant | " << c.what << " | " << c.kernel << " " << c.config << " | " << c.verdict
            << " | " << (v.kind == Verdict::Kind::clean ? "clean" : v.text) << std::endl;
  const bool is_legal = c.verdict == "legal", is_accepted = v.kind == Verdict::Kind::clean;
  ++(is_legal ? legal : effective);
  (is_legal ? accepted : caught) += is_accepted == is_legal ? 1 : 0;
  EXPECT_EQ(is_accepted, is_legal) << c.what << "\n" << v.text;
  EXPECT_TRUE(v.kind != Verdict::Kind::no_text && v.kind != Verdict::Kind::failed) << v.text;
}

std::vector<size_t> chosen() {
  std::vector<size_t> list;
  for (size_t i = 0; i < all_changes().size(); i += one_of()) list.push_back(i);
  return list;
}

INSTANTIATE_TEST_SUITE_P(All, PipelineMutants, testing::ValuesIn(chosen()), [](const auto& info) {
  return std::to_string(info.param) + "_" + name_of(all_changes()[info.param].what);
});

TEST(PipelineMutantsList, PartsStandOnceInTheTexts) {
  const std::vector<Change> all = all_changes();
  EXPECT_GE(all.size(), 164u);
  for (const Change& c : all) EXPECT_NO_THROW(changed_text(c)) << c.what;
}

}  // namespace
}  // namespace tw::test
