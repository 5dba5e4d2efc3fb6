// Every kernel of the library with every kind of mapping, where a block has several tiles.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <iostream>
#include <optional>
#include <regex>
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
        "for a block\n"
        "{} with loops that are longer than their stages\n",
        texts, forms, wide, staged);
  }

 protected:
  static inline size_t texts = 0, forms = 0, wide = 0, staged = 0;
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
    std::vector<Problem> served = served_problems(text, problems, kMostElements);
    const auto cost = [&](const Problem& p) {  // with two tiles the fewest elements
      const int64_t tiles = instances_of(text, p) / 2;
      return tiles >= 2 ? elements_of(*form.entry, p) : 2 * kMostElements - tiles;
    };
    std::ranges::sort(served, {}, cost);
    for (const Problem& p : served) {
      const int64_t tiles = instances_of(text, p) / 2;
      if (best && tiles <= best->tiles) break;
      if (is_meant_for(text, p)) {
        best = Launch{text, p, tiles};
        break;
      }
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
      EXPECT_EQ(fault_of(text, usual.problem, text.body, 0, values_of(*text.entry)), "")
          << usual.text.label() << ", mapping " << to_string(Mapping{"cuda1", knobs});
      ++texts;
      if (!all) break;
    }
  }
}

/// A text with a fault where the loop that fills stages of shared memory has more turns than those,
/// the last of them no whole one; nothing where the text has no such loop.
std::optional<std::string> with_long_loop_a_fault(const std::string& body) {
  static const std::regex panel(", (\\d+) stages\n"), end("const i64 (\\w+_end) = ([^;]*);"),
      rounded("cdiv\\((\\w+), (\\d+)\\)");
  std::smatch panels, count;
  if (!std::regex_search(body, panels, panel)) return std::nullopt;
  const std::string before = panels.prefix().str();
  auto loop = std::sregex_iterator(before.begin(), before.end(), end);
  if (loop == std::sregex_iterator()) return std::nullopt;
  std::smatch turns;
  for (; loop != std::sregex_iterator(); ++loop) turns = *loop;
  const std::string all = turns.str(2);
  if (!std::regex_search(all, count, rounded)) return std::nullopt;
  const std::string fault =
      fmt::format(" if ({0} > {1} && {2} % {3} != 0) {{ int a[1]; a[{0}] = 0; }}", turns.str(1),
                  panels.str(1), count.str(1), count.str(2));
  return std::string(body).insert(static_cast<size_t>(turns.position() + turns.length()), fault);
}

/// The first of the text's launches, of two tiles or more for each of two blocks, with such a loop.
std::optional<Problem> longer_than_stages(const LibraryText& text, const std::string& probe) {
  constexpr int64_t kMostElements = 80'000;
  for (const Problem& p : served_problems(text, {}, kMostElements)) {
    if (instances_of(text, p) < 4) continue;
    const std::string fault = fault_of(text, p, probe, 0, values_of(*text.entry));
    if (fault.find("leaves the bounds of a local array") != std::string::npos &&
        is_meant_for(text, p))
      return p;
  }
  return std::nullopt;
}

/// A stage is filled anew only where a loop has more turns than there are stages. Of small problems
/// those of f32 have such loops.
TEST_P(LibraryMappings, LoopsAreLongerThanTheirStages) {
  for (const LibraryForm& form : library_forms()) {
    if (form.dtype != f32 || std::string(form.entry->name) != GetParam().name) continue;
    bool has_stages = false, is_longer = false;
    for (const Problem& made_for : small_problems(form)) {
      const LibraryText text = library_text(*form.entry, made_for);
      const std::optional<std::string> probe = with_long_loop_a_fault(text.body);
      if (!probe) continue;
      has_stages = true;
      const std::optional<Problem> p = longer_than_stages(text, *probe);
      if (!p) continue;
      EXPECT_EQ(fault_of(text, *p, text.body, 0, values_of(*text.entry)), "") << text.label();
      is_longer = true;
      break;
    }
    EXPECT_EQ(has_stages, is_longer) << form.entry->name << " " << name(form.dtype);
    staged += has_stages ? 1 : 0;
  }
}

INSTANTIATE_TEST_SUITE_P(Library, LibraryMappings, testing::ValuesIn(kernels::kernel_list()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tw::test
