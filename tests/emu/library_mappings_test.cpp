// Every kernel of the library with every kind of mapping, where a block has several tiles.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <iostream>
#include <optional>
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

/// A text and a problem that it serves.
struct Launch {
  LibraryText text;
  Problem problem;
  int64_t tiles = 0;
};

/// The smallest launch in which each of two blocks has two tiles; else the one with the most.
Launch several_tiles(const LibraryForm& form, const std::vector<Problem>& problems) {
  constexpr int64_t kMostElements = 60'000;
  std::optional<Launch> best;
  for (const Problem& made_for : problems) {
    const LibraryText text = library_text(*form.entry, made_for);
    for (const Problem& p : served_problems(text, problems, kMostElements)) {
      const int64_t tiles = instances_of(text, p) / 2;
      const bool is_better =
          !best || (best->tiles < 2 ? tiles > best->tiles
                                    : tiles >= 2 && elements_of(*form.entry, p) <
                                                        elements_of(*form.entry, best->problem));
      if (is_better && is_meant_for(text, p)) best = Launch{text, p, tiles};
    }
    if (best && best->tiles >= 2) break;
  }
  return best.value();
}

/// A text of a type's first problem that has several tiles a block on a small one; other mappings
/// only where they change the text.
TEST_P(LibraryMappings, RunCleanAndRight) {
  for (const LibraryForm& form : library_forms()) {
    if (std::string(form.entry->name) != GetParam().name) continue;
    const Launch usual = several_tiles(form, small_problems(form));
    ++forms;
    wide += usual.tiles >= 2 ? 1 : 0;
    if (usual.tiles < 2) std::cout << "a block has one tile of " << usual.text.label() << std::endl;
    const bool all = form.dtype == f32 || form.dtype == bf16 || form.dtype == form.entry->dtypes[0];
    std::set<std::string> seen;
    for (const LibraryKnobs& knobs : kLibraryMappings) {
      const LibraryText text = library_text(*form.entry, usual.text.made_for, knobs);
      if (!seen.insert(text.body).second) continue;
      EXPECT_EQ(fault_of(text, usual.problem, text.body, 0), "")
          << usual.text.label() << ", mapping " << to_string(Mapping{"cuda1", knobs});
      ++texts;
      if (!all) break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Library, LibraryMappings, testing::ValuesIn(kernels::kernel_list()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tw::test
