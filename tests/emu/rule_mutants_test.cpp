#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

#include "tw/jit/compiler.h"
#include "tw/jit/nvrtc.h"

#include "tests/emu/apart.h"
#include "tests/emu/mutate.h"

namespace tw::test {
namespace {

constexpr uint64_t kSeedsOfRule = 8;

/// Small launches that together come to every line of the five texts, to every remainder, to
/// options that make a guard matter, and to data ("odd") where a wrong maximum, mask or constant
/// shows.
const std::map<std::string, std::vector<const char*>> kRuleLaunches = {
    {"rows",
     {"cols=256 tpr=32 rpb=4 rows=9 rms=1 odd=1", "cols=1024 tpr=64 rpb=2 rows=7 odd=1",
      "cols=1024 tpr=64 rpb=2 rows=5 rms=1 odd=1", "cols=1024 tpr=128 rpb=1 rows=3 grid=1 odd=1",
      "cols=256 tpr=16 rpb=8 rows=19 odd=1", "cols=8192 tpr=1024 rpb=1 rows=1"}},
    {"gemv",
     {"n=32 k=256 nb=3", "n=16 k=256 nb=8", "n=16 k=512 nb=8 wpb=4", "n=32 k=512 nb=1 wpb=2"}},
    {"ring", {"m=25", "st=3 m=45 n=96", "rank=1 m=64 n=32", "cl=2 st=3 m=40", "cl=4 m=19 grid=1"}},
    {"gemm",
     {"cwg=1 bm=64 bn=64 m=65 n=72 k=136 grid=2", "st=4 m=256 n=256 k=320",
      "st=4 tb=1 m=256 n=264 k=328 grid=2", "st=4 cm=2 m=384 n=256 k=320",
      "st=4 cn=2 m=256 n=384 k=320", "st=4 sk=2 m=128 n=128 k=192",
      "st=2 sk=4 cwg=1 bn=64 m=136 n=72 k=320", "st=5 pp=1 m=512 n=256 k=320 grid=2",
      "st=3 cwg=3 bm=192 bn=96 epw=32 epb=1 grp=2 m=392 n=288 k=328",
      "st=3 bm=256 bn=64 bkb=256 m=264 n=72 k=328", "st=4 eb=1 m=256 n=128 k=512",
      "st=4 bn=48 epw=16 cwg=1 bm=64 m=128 n=96 k=328", "st=1 sk=2 m=128 n=128 k=64"}},
    {"fa",
     {"bnk=16 sq=131 sk=145 heads=2 causal=1 odd=1", "sq=200 sk=300 heads=2 kvdiv=2 odd=1",
      "causal=1 sq=200 sk=328 heads=3 hsec=2 odd=1", "bnk=176 osep=0 causal=1 sq=256 sk=400",
      "nwg=3 bnk=80 sq=392 sk=248 heads=2", "ppg=0 bnk=176 osep=0 sq=200 sk=400 heads=2",
      "causal=1 bnk=48 sq=129 sk=70 odd=1", "causal=1 bnk=16 sq=200 sk=40",
      "bnk=16 sq=80 sk=193 heads=3 odd=1 seeds=32",
      "nwg=3 bnk=16 sq=200 sk=79 heads=3 odd=1 seeds=32", "causal=1 bnk=16 sq=96 sk=145 odd=1",
      "bnk=16 sq=128 sk=145 inf=1", "causal=1 bnk=48 sq=129 sk=176 inf=1"}},
};

struct Rule {
  std::string kernel;
  RuleMutant mutant;
  std::string name() const { return kernel + " " + mutant.name; }
};

enum class Form : uint8_t { preprocessed, object, cubin };

/// What compilers make of a launch's program: its text behind the preprocessor, its code on this
/// machine without the numbers of lines, or its code on a GPU.
std::string compiled(const Rule& rule, const std::string& text, const char* config, Form form) {
  static const std::vector<std::string> kText = {"-std=c++17", "-E", "-P", "-w"};
  static const std::vector<std::string> kCode = {"-std=c++17",
                                                 "-O2",
                                                 "-g0",
                                                 "-s",
                                                 "-fPIC",
                                                 "-shared",
                                                 "-nostdlib",
                                                 "-fno-exceptions",
                                                 "-ffp-contract=off",
                                                 "-w",
                                                 "-Wl,--build-id=none",
                                                 "-D__builtin_LINE()=0"};
  const Pipeline p = pipeline(rule.kernel, text, Config(config));
  if (form == Form::cubin) return compile_cubin(find_nvrtc(), "sm_90a", cuda_text(p), false).cubin;
  return compile_shared(find_compiler(), form == Form::object ? kCode : kText,
                        with_prelude(p.launch.program));
}

/// Whether the mutant's is that of the text as it was.
bool same(const Rule& rule, const char* config, Form form) {
  static std::map<std::string, std::string> originals;
  std::string& original =
      originals[fmt::format("{} {} {}", rule.kernel, config, static_cast<int>(form))];
  if (original.empty()) original = compiled(rule, kernel_text(rule.kernel), config, form);
  return original == compiled(rule, rule.mutant.text, config, form);
}

struct Outcome {
  enum class Kind : uint8_t { caught, no_text, same_object, same_cubin, survives, failed } kind;
  Verdict verdict;
};

Outcome::Kind outcome_of(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::clean:
      return Outcome::Kind::survives;
    case Verdict::Kind::no_text:
      return Outcome::Kind::no_text;
    case Verdict::Kind::failed:
      return Outcome::Kind::failed;
    case Verdict::Kind::report:
    case Verdict::Kind::numbers:
    case Verdict::Kind::refused:
    case Verdict::Kind::killed:
    case Verdict::Kind::late:
      return Outcome::Kind::caught;
  }
  return Outcome::Kind::failed;
}

uint64_t seeds_of(const char* config) {
  return static_cast<uint64_t>(Config(config)("seeds", kSeedsOfRule));
}

/// All launches with one seed, then those that the change has not left as they were with more. Of a
/// mutant that is proven to be none, the first launch.
Outcome outcome_of(const Rule& rule, bool is_proven) {
  const ScratchCache scratch;
  std::vector<const char*> differ;
  for (const char* config : kRuleLaunches.at(rule.kernel)) {
    if (same(rule, config, Form::preprocessed)) continue;
    const Verdict v = judged_apart(rule.kernel, rule.mutant.text, config, 1);
    if (v.kind != Verdict::Kind::clean) return {outcome_of(v.kind), v};
    if (is_proven) return {Outcome::Kind::survives, {}};
    differ.push_back(config);
  }
  std::erase_if(differ, [&](const char* c) { return same(rule, c, Form::object); });
  if (differ.empty()) return {Outcome::Kind::same_object, {}};
  for (const char* config : differ) {
    const Verdict v = judged_apart(rule.kernel, rule.mutant.text, config, seeds_of(config));
    if (v.kind != Verdict::Kind::clean) return {outcome_of(v.kind), v};
  }
  const bool same_cubins = std::all_of(differ.begin(), differ.end(),
                                       [&](const char* c) { return same(rule, c, Form::cubin); });
  return {same_cubins ? Outcome::Kind::same_cubin : Outcome::Kind::survives, {}};
}

std::vector<Rule> rules() {
  std::vector<Rule> all;
  for (const auto& launches : kRuleLaunches) {
    for (const RuleMutant& m : mutants_of(kernel_text(launches.first)))
      all.push_back({launches.first, m});
  }
  return all;
}

/// In an order that is random and always the same, so that the first ones are a fair sample.
std::vector<Rule> shuffled_rules() {
  std::vector<Rule> all = rules();
  std::mt19937 random(1);
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
  return all;
}

/// Names of mutants, cut where a line of text would be too long.
std::vector<std::string> equivalent() {
  std::ifstream in(TW_TEST_DIR "/texts/equivalent.txt");
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("= ")) all.push_back(line.substr(2));
  }
  return all;
}

bool is_named(const std::vector<std::string>& names, const Rule& rule) {
  const std::string whole = rule.name();
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return whole.starts_with(name); });
}

/// TW_EMU_MUTANTS: one of so many is tried, of those whose names begin with what stands behind:
/// "1" for all, "1 gemm 11" for all of gemm's lines 11, 110 to 119.
struct Choice {
  size_t share = 300;
  std::string begin;

  bool few() const { return share == 300; }
  bool all() const { return share == 1 && begin.empty(); }
};

Choice choice() {
  const char* text = std::getenv("TW_EMU_MUTANTS");
  if (text == nullptr) return {};
  char* end = nullptr;
  Choice c{std::max<size_t>(std::strtoul(text, &end, 10), 1), {}};
  c.begin = *end == ' ' ? end + 1 : end;
  return c;
}

std::string percent(size_t part, size_t whole) {
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) /
                                     static_cast<double>(std::max<size_t>(whole, 1)));
}

struct Tally {
  size_t tried = 0, proven = 0, survive = 0;
  std::map<Outcome::Kind, size_t> outcomes;
  std::map<Verdict::Kind, size_t> caught;  ///< by what

  void add(const Rule& rule, const Outcome& o, bool is_proven) {
    ++tried;
    ++outcomes[o.kind];
    if (o.kind == Outcome::Kind::caught) ++caught[o.verdict.kind];
    if (o.kind == Outcome::Kind::same_cubin)
      std::cout << "has the same code on a GPU | " << rule.name() << std::endl;
    if (o.kind != Outcome::Kind::survives) return;
    ++(is_proven ? proven : survive);
    std::cout << (is_proven ? "is equivalent | " : "survives | ") << rule.name() << std::endl;
  }
  size_t all_caught() { return outcomes[Outcome::Kind::caught]; }
  void print(size_t all) {
    const size_t raw = all_caught() + proven + survive, effective = all_caught() + survive;
    std::cout << fmt::format(
        "{} of {} mutants tried, chosen at random; {} do not compile, {} have the same object "
        "code, {} the same code on a GPU\n"
        "{} raw mutants, {} caught, {}: {} by a report, {} by wrong numbers, {} by time, {} by a "
        "signal, {} refused\n"
        "{} survive, {} of them proven equivalent; of the {} others {} caught\n",
        tried, all, outcomes[Outcome::Kind::no_text], outcomes[Outcome::Kind::same_object],
        outcomes[Outcome::Kind::same_cubin], raw, all_caught(), percent(all_caught(), raw),
        caught[Verdict::Kind::report], caught[Verdict::Kind::numbers], caught[Verdict::Kind::late],
        caught[Verdict::Kind::killed], caught[Verdict::Kind::refused], proven + survive, proven,
        effective, percent(all_caught(), effective));
  }
};

TEST(RuleMutants, AreCaught) {
  const Choice chosen = choice();
  std::vector<Rule> all = shuffled_rules();
  const size_t count = all.size();
  std::erase_if(all, [&](const Rule& r) { return !r.name().starts_with(chosen.begin); });
  all.resize(all.size() / chosen.share);
  const std::vector<std::string> proofs = equivalent();
  Tally tally;
  for (const Rule& rule : all) {
    const bool proven = is_named(proofs, rule);
    const Outcome o = outcome_of(rule, proven);
    tally.add(rule, o, proven);
    EXPECT_FALSE(proven && o.kind == Outcome::Kind::caught) << rule.name() << o.verdict.text;
    EXPECT_NE(o.kind, Outcome::Kind::failed) << rule.name() << o.verdict.text;
  }
  tally.print(count);
  EXPECT_GT(tally.all_caught(), 0u);
  if (chosen.all()) {
    EXPECT_LE(100 * tally.survive, 5 * (tally.all_caught() + tally.survive));
  }
}

TEST(RuleMutants, LaunchesRunClean) {
  const bool few = choice().few();
  for (const auto& launches : kRuleLaunches) {
    for (size_t i = 0; i < launches.second.size(); i += few ? 8 : 1) {
      const Verdict v = judged_apart(launches.first, kernel_text(launches.first),
                                     launches.second[i], few ? 1 : seeds_of(launches.second[i]));
      EXPECT_EQ(v.kind, Verdict::Kind::clean) << launches.first << launches.second[i] << v.text;
    }
  }
}

TEST(RuleMutants, ProofsAreOfMutantsThatThereAre) {
  std::set<std::string> names;
  for (const Rule& r : rules()) EXPECT_TRUE(names.insert(r.name()).second) << r.name();
  for (const std::string& name : equivalent()) {
    const auto is_of = [&](const std::string& whole) { return whole.starts_with(name); };
    EXPECT_EQ(std::count_if(names.begin(), names.end(), is_of), 1) << name;
  }
}

std::vector<std::string> changes_of(const std::string& text) {
  std::vector<std::string> all;
  for (const RuleMutant& m : mutants_of(text)) all.push_back(m.text);
  return all;
}

TEST(Mutate, ChangesWhatTheRulesSay) {
  EXPECT_EQ(changes_of("{\n  f<1>(x,\n    y);\n  g();\n}"),
            (std::vector<std::string>{"{\n  ;\n\n  g();\n}", "{\n  g();\n  f<1>(x,\n    y);\n}",
                                      "{\n  f<2>(x,\n    y);\n  g();\n}",
                                      "{\n  f<0>(x,\n    y);\n  g();\n}",
                                      "{\n  f<1>(x,\n    y);\n  ;\n}"}));
  EXPECT_EQ(changes_of("x = 3u;"), (std::vector<std::string>{"x = 4u;", "x = 2u;", "x = 6u;"}));
  EXPECT_EQ(changes_of("#define A 0\n"),
            (std::vector<std::string>{"#define A 1\n", "#define A (-1)\n"}));
  EXPECT_EQ(changes_of("a + b <= c && d"),
            (std::vector<std::string>{"a - b <= c && d", "a + b < c && d", "a + b <= c || d"}));
  EXPECT_EQ(changes_of("#if A == 1\n#define TW_BLOCKS 2\n#pragma unroll 4\n// 1 + "
                       "2\n__launch_bounds__(1, 2) -x; 1.5f"),
            std::vector<std::string>{});
}

}  // namespace
}  // namespace tw::test
