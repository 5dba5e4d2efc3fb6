// Random changes of the texts of the library's kernels: what the emulator and a reference find.
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <sstream>

#include "tw/base/error.h"
#include "tw/emu/apart.h"
#include "tw/emu/impl/text.h"
#include "tw/jit/nvrtc.h"

#include "tests/emu/apart.h"
#include "tests/emu/library_texts.h"
#include "tests/emu/mutate.h"

namespace tw::test {
namespace {

using kernels::Problem;

constexpr int kSecondsOfLibrary = 10;  // of one process; all turns of a text take less

/// Then all problems had all values.
uint64_t turns_of(const LibraryText& text) { return values_of(*text.entry).size(); }

/// What became of a text.
struct LibraryOutcome {
  enum class Kind : uint8_t { clean, fault, killed, late, no_text, same_code, proven };
  Kind kind = Kind::clean;
  std::string text = {};
};

LibraryOutcome judged_text(const LibraryText& text, const std::string& body, uint64_t turns) {
  try {
    emu::load_text(text.prelude + body, text.launch.entry);
  } catch (const InternalError& e) {
    return {LibraryOutcome::Kind::no_text, e.what()};
  }
  for (uint64_t turn = 0; turn < turns; ++turn) {
    if (std::string fault = fault_of(text, body, turn); !fault.empty())
      return {LibraryOutcome::Kind::fault, fault};
  }
  return {};
}

/// In a process of its own, for texts that crash or never end.
LibraryOutcome judged_in_child(const LibraryText& text, const std::string& body, uint64_t turns) {
  const Apart a = run_apart(
      [&](const std::function<void(std::string_view)>& tell) {
        const LibraryOutcome o = judged_text(text, body, turns);
        tell(static_cast<char>(o.kind) + o.text);
      },
      {.cpu = kSecondsOfLibrary});
  if (a.ended) return {static_cast<LibraryOutcome::Kind>(a.told.at(0)), a.told.substr(1)};
  return {a.late ? LibraryOutcome::Kind::late : LibraryOutcome::Kind::killed,
          fmt::format("signal {}", a.signal)};
}

/// The text with what each launch promises said to the compiler: no extent is negative, and blocks
/// have so many threads.
std::string with_promises(const std::string& body, int threads) {
  static const std::regex extent("const i64 (\\w+) = args\\.dims\\[[^;]*;"),
      thread("\\btw_thread\\(\\)");
  const std::string known = fmt::format(
      "__device__ __forceinline__ int tw_known_thread() {{\n"
      "  const int t = tw_thread();\n"
      "  __builtin_assume(t >= 0 && t < {});\n"
      "  return t;\n}}\n",
      threads);
  return known +
         std::regex_replace(std::regex_replace(body, extent, "$& __builtin_assume($1 >= 0);"),
                            thread, "tw_known_thread()");
}

/// Whether a GPU would run the same instructions: then the text is no mutant.
bool same_on_gpu(const LibraryText& text, const std::string& body) {
  const auto cubin = [&](const std::string& with) {
    return compile_cubin(find_nvrtc(), "sm_90a",
                         text.cuda_prelude + with_promises(with, text.launch.threads), false)
        .cubin;
  };
  try {
    return cubin(body) == cubin(text.body);
  } catch (const Error&) {
    return false;
  }
}

/// No grid is empty: launches with one start nothing. So each extent is 1 or more, and is the
/// larger of it and 1, 0 or -1.
bool is_of_empty_grids(const RuleMutant& m) {
  static const std::regex change("\\d+:\\d+ 0 -> -?1 \\| const i64 instances = max\\(.*"),
      of_extent(", 0\\)(?= \\*|;)"), zero("\\b0\\b");
  const std::string line = m.name.substr(m.name.find('|') + 1);
  return std::regex_match(m.name, change) &&
         !std::regex_search(std::regex_replace(line, of_extent, ")"), zero);
}

/// A sum over lanes, or a largest or smallest number of them, that asks lane ^ 9 for lane ^ 8,
/// behind the steps by 1, 2 and 4: those two lanes hold the same, as each step takes the same two
/// numbers in both, and their order is no matter.
bool is_of_equal_lanes(const std::string& body, const RuleMutant& m) {
  static const std::regex change(
      "(\\d+):\\d+ (2|4|8|16) -> (\\d+) \\| const \\w+ \\w+ = tw_shuffle_xor\\((\\w+), \\2\\);");
  std::smatch parts;
  if (!std::regex_match(m.name, parts, change)) return false;
  const int by = std::stoi(parts[2]);
  if (std::stoi(parts[3]) != by + 1) return false;
  std::istringstream text(body);
  std::string line, before;
  for (int left = std::stoi(parts[1]) - 1; left > 0 && std::getline(text, line); --left)
    before += line + "\n";
  std::string steps;
  for (int step = 1, group = 1; step < by; step *= 2, group += 2)
    steps += fmt::format(
        " *const \\w+ (\\w+) = tw_shuffle_xor\\({0}, {1}\\);\n"
        " *const \\w+ (\\w+) = (?:{0} \\+ \\{2}|tw_(?:max|min)\\({0}, \\{2}\\));\n"
        " *{0} = \\{3};\n",
        parts[4].str(), step, group, group + 1);
  const size_t lines = static_cast<size_t>(std::count(steps.begin(), steps.end(), '\n'));
  size_t begin = before.size();
  for (size_t i = 0; i <= lines && begin > 0; ++i) begin = before.rfind('\n', begin - 1);
  return std::regex_match(before.substr(begin + 1), std::regex(steps));
}

LibraryOutcome outcome_of_text(const LibraryText& text, const std::string& body) {
  LibraryOutcome o = judged_in_child(text, body, turns_of(text));
  if (o.kind == LibraryOutcome::Kind::clean && same_on_gpu(text, body))
    o.kind = LibraryOutcome::Kind::same_code;
  return o;
}

/// Of one that is proven to be none a single turn is tried, which must find nothing.
LibraryOutcome outcome_of_mutant(const LibraryText& text, const RuleMutant& m) {
  if (!is_of_empty_grids(m) && !is_of_equal_lanes(text.body, m))
    return outcome_of_text(text, m.text);
  LibraryOutcome o = judged_in_child(text, m.text, 1);
  EXPECT_EQ(o.kind, LibraryOutcome::Kind::clean) << text.label() << " " << m.name << o.text;
  o.kind = LibraryOutcome::Kind::proven;
  return o;
}

size_t count_of_mutants() {
  const char* text = std::getenv("TW_EMU_LIBRARY_MUTANTS");
  return text != nullptr ? std::strtoul(text, nullptr, 10) : 6;
}

/// With the suite of tests little time goes into launches.
Effort effort() {
  if (count_of_mutants() < 100) return {.problems = 3, .seconds = 0.2, .elements = 20'000};
  return {.problems = 24, .seconds = 1.6, .elements = 120'000};
}

/// Texts by form and problem, made when they are asked for.
class Library {
 public:
  const std::vector<LibraryForm>& forms() const { return forms_; }

  /// The text of one of the form's problems, the same for all that have it.
  const LibraryText& text(size_t form, uint32_t random) {
    const std::vector<Problem> problems = small_problems(forms_[form]);
    const size_t chosen = random % problems.size();
    const auto [named, is_new] = bodies_.try_emplace({form, chosen});
    if (is_new) {
      LibraryText text = library_text(*forms_[form].entry, problems[chosen]);
      named->second = text.body;
      const auto [found, is_first] = texts_.try_emplace({form, text.body}, std::move(text));
      if (is_first) find_problems(found->second, problems, effort());
    }
    return texts_.at({form, named->second});
  }

 private:
  std::vector<LibraryForm> forms_ = library_forms();
  std::map<std::pair<size_t, size_t>, std::string> bodies_;
  std::map<std::pair<size_t, std::string>, LibraryText> texts_;
};

struct LibraryTally {
  std::map<LibraryOutcome::Kind, size_t> of;

  size_t count(LibraryOutcome::Kind kind) const {
    const auto found = of.find(kind);
    return found == of.end() ? 0 : found->second;
  }
  size_t caught() const {
    using enum LibraryOutcome::Kind;
    return count(fault) + count(killed) + count(late);
  }
  size_t raw() const { return caught() + count(LibraryOutcome::Kind::clean); }
  /// Also those that a GPU does not tell from the text, or that a proof does not.
  size_t all() const {
    return raw() + count(LibraryOutcome::Kind::same_code) + count(LibraryOutcome::Kind::proven);
  }
  static double percent(size_t part, size_t whole) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<size_t>(whole, 1));
  }
  void print(size_t tried, size_t forms) const {
    using enum LibraryOutcome::Kind;
    std::cout << fmt::format(
        "{} random mutants of {} kernels and types tried; {} do not compile, {} become the same "
        "code of a GPU, {} are proven to do the same\n"
        "of all {} that compile {:.1f} % caught\n"
        "{} raw mutants of the library, {} caught, {:.1f} %; {} of them by a signal, {} by time\n",
        tried, forms, count(no_text), count(same_code), count(proven), all(),
        percent(caught(), all()), raw(), caught(), percent(caught(), raw()), count(killed),
        count(late));
  }
};

/// A kernel and type, a problem of it and a place of its text, each at random: no kernel counts
/// more because its text is long.
TEST(LibraryMutants, AreCaught) {
  const ScratchCache cache;
  Library library;
  std::mt19937 random(1);
  std::set<std::string> tried;
  LibraryTally tally;
  while (tried.size() < count_of_mutants()) {
    const size_t form = random() % library.forms().size();
    const uint32_t problem = random(), place = random();
    const LibraryText& text = library.text(form, problem);
    ASSERT_FALSE(text.problems.empty()) << text.label();
    const std::vector<RuleMutant> all = mutants_of(text.body);
    const RuleMutant& mutant = all[place % all.size()];
    if (!tried.insert(text.label() + " " + mutant.name).second) continue;
    const LibraryOutcome o = outcome_of_mutant(text, mutant);
    ++tally.of[o.kind];
    if (o.kind == LibraryOutcome::Kind::clean)
      std::cout << "survives | " << text.label() << " | " << mutant.name << std::endl;
    if (tried.size() % 25 == 0)
      std::cout << fmt::format("after {}: {} of {}", tried.size(), tally.caught(), tally.raw())
                << std::endl;
  }
  tally.print(tried.size(), library.forms().size());
  EXPECT_GE(100 * tally.caught(), 93 * (tried.size() < 100 ? 0 : tally.raw()));
  EXPECT_GT(tally.caught(), 0u);
}

/// Every text is right as it is on some launches, as the judge above sees it.
TEST(LibraryMutants, LaunchesRunClean) {
  Library library;
  size_t texts = 0, problems = 0;
  const size_t step = count_of_mutants() < 100 ? 25 : 1;
  for (size_t form = 0; form < library.forms().size(); form += step, ++texts) {
    const LibraryText& text = library.text(form, 0);
    ASSERT_FALSE(text.problems.empty()) << text.label();
    problems += text.problems.size();
    const LibraryOutcome o = judged_in_child(text, text.body, turns_of(text));
    EXPECT_EQ(o.kind, LibraryOutcome::Kind::clean) << text.label() << o.text;
  }
  std::cout << fmt::format("{} texts, {} launches of them\n", texts, problems);
}

/// One that is known: the barrier of a sum over a block's warps, of rows that are held.
TEST(LibraryMutants, ABarrierLessIsCaught) {
  const kernels::KernelEntry& entry = kernels::kernel_named("softmax");
  LibraryText text = library_text(entry, complete(entry, {{{"m", 3}, {"n", 3000}}}));
  find_problems(text, {}, {.problems = 1, .seconds = 1, .elements = 20'000});
  ASSERT_EQ(text.problems.size(), 1u);
  EXPECT_EQ(outcome_of_text(text, text.body).kind, LibraryOutcome::Kind::same_code);
  const size_t at = text.body.rfind("tw_sync();", text.body.find("__global__"));
  ASSERT_NE(at, std::string::npos);
  const LibraryOutcome o = outcome_of_text(text, std::string(text.body).replace(at, 10, ";"));
  EXPECT_EQ(o.kind, LibraryOutcome::Kind::fault);
  EXPECT_TRUE(o.text.starts_with("race") || o.text.starts_with("uninitialised")) << o.text;
}

TEST(LibraryMutants, ProofsAreOfWhatTheySay) {
  const std::string sum =
      "  const f32 a = tw_shuffle_xor(acc, 1);\n  const f32 b = acc + a;\n  acc = b;\n"
      "  const f32 c = tw_shuffle_xor(acc, 2);\n";
  const auto is_proven = [](const std::string& body, const std::string& change) {
    for (const RuleMutant& m : mutants_of(body))
      if (m.name.find(change) != std::string::npos)
        return is_of_empty_grids(m) || is_of_equal_lanes(body, m);
    throw std::logic_error("no " + change);
  };
  EXPECT_TRUE(is_proven("\n" + sum, " 2 -> 3"));
  EXPECT_FALSE(is_proven("\n" + sum, " 2 -> 1"));
  EXPECT_FALSE(is_proven("\n" + sum, " 1 -> 2"));
  const std::string largest = std::regex_replace(std::regex_replace(sum, std::regex("f32"), "i32"),
                                                 std::regex("acc \\+ a"), "tw_max(acc, a)");
  EXPECT_TRUE(is_proven("\n" + largest, " 2 -> 3"));
  EXPECT_FALSE(
      is_proven("\n" + std::regex_replace(largest, std::regex("tw_max"), "tw_pow"), " 2 -> 3"));
  std::string other = sum;
  other.replace(other.find("acc, 1"), 6, "sum, 1");
  EXPECT_FALSE(is_proven("\n" + other, " 2 -> 3"));
  for (const char* const step : {"acc + a", "acc = b"}) {
    std::string another = sum;
    another.replace(another.find(step) + 6, 1, "z");
    EXPECT_FALSE(is_proven("\n" + another, " 2 -> 3")) << step;
  }
  EXPECT_TRUE(is_proven("\nconst i64 instances = max(M, 0);\n", "0 -> 1"));
  EXPECT_TRUE(is_proven("\nconst i64 instances = max(M, 0);\n", "0 -> -1"));
  EXPECT_FALSE(is_proven("\nconst i64 instances = max(M, 1);\n", "1 -> 2"));
  EXPECT_FALSE(is_proven("\nconst i64 instances = max(cdiv(M, 0), 0);\n", "0 -> 1"));
}

}  // namespace
}  // namespace tw::test
