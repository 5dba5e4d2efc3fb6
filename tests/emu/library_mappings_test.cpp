// Every kernel of the library with every kind of mapping, where a block has several tiles.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <iostream>
#include <set>

#include "tests/emu/library_texts.h"

namespace tw::test {
namespace {

using kernels::KernelEntry;
using kernels::Problem;

using LibraryKnobs = std::map<std::string, int64_t>;
const LibraryKnobs kLibraryMappings[] = {{},
                                         {{"stages", 1}},
                                         {{"stages", 2}},
                                         {{"stages", 4}},
                                         {{"warps", 1}},
                                         {{"warps", 8}},
                                         {{"cluster", 2}}};

class LibraryMappings : public testing::TestWithParam<KernelEntry> {
 public:
  static void TearDownTestSuite() {
    std::cout << fmt::format(
        "{} texts of {} kernels and types, of these {} with two tiles or more "
        "for a block\n",
        texts, forms, wide);
  }

 protected:
  static inline size_t texts = 0, forms = 0, wide = 0;
};

/// Of the problems that the text serves, the one in which a block has the most tiles.
Problem widest(const LibraryText& text) {
  return *std::ranges::max_element(text.problems, {},
                                   [&](const Problem& p) { return tiles_of_a_block(text, p); });
}

/// A text of a type's first problem, on a ragged problem past the end of its tiles and of what a
/// ring of stages holds; other mappings only where they change the text.
TEST_P(LibraryMappings, RunCleanAndRight) {
  for (const LibraryForm& form : library_forms()) {
    if (std::string(form.entry->name) != GetParam().name) continue;
    const std::vector<Problem> problems = small_problems(form);
    LibraryText usual = library_text(*form.entry, problems.front());
    find_problems(usual, problems, {.problems = 4, .seconds = 0.5, .elements = 30'000});
    ASSERT_FALSE(usual.problems.empty()) << usual.label();
    const Problem p = widest(usual);
    ++forms;
    const bool several = tiles_of_a_block(usual, p) >= 2;
    wide += several ? 1 : 0;
    if (!several) std::cout << "a block has one tile of " << usual.label() << std::endl;
    const bool all = form.dtype == f32 || form.dtype == bf16 || form.dtype == form.entry->dtypes[0];
    std::set<std::string> seen;
    for (const LibraryKnobs& knobs : kLibraryMappings) {
      const LibraryText text = library_text(*form.entry, problems.front(), knobs);
      if (!seen.insert(text.body).second) continue;
      EXPECT_EQ(fault_of(text, p, text.body, 0), "")
          << usual.label() << ", mapping " << to_string(Mapping{"cuda1", knobs});
      ++texts;
      if (!all) break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Library, LibraryMappings, testing::ValuesIn(kernels::kernel_list()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tw::test
