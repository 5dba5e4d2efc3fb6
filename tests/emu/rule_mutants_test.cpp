#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/jit/compiler.h"

#include "tests/emu/mutate.h"
#include "tests/emu/pipelines.h"

namespace tw::test {
namespace {

constexpr uint64_t kSeedsOfRule = 8;
constexpr rlim_t kSecondsOfRule = 10;  // of one process; a launch takes less than one

/// Small launches that together come to every line of the five texts.
const std::map<std::string, std::vector<const char*>> kRuleLaunches = {
    {"rows",
     {"cols=256 tpr=32 rpb=4 rows=9 rms=1", "cols=1024 tpr=64 rpb=2 rows=5",
      "cols=1024 tpr=128 rpb=1 rows=3 grid=1", "cols=256 tpr=16 rpb=8 rows=19"}},
    {"gemv", {"n=32 k=256 nb=3", "n=16 k=512 nb=8 wpb=4", "n=32 k=512 nb=1 wpb=2"}},
    {"ring", {"", "st=3 m=45 n=96", "rank=1 m=64 n=32", "cl=2 st=3 m=40", "cl=4 m=19 grid=1"}},
    {"gemm",
     {"st=4 m=256 n=256 k=320", "st=4 tb=1 m=256 n=264 k=328 grid=2", "st=4 cm=2 m=384 n=256 k=320",
      "st=4 cn=2 m=256 n=384 k=320", "st=4 sk=2 m=128 n=72 k=584",
      "st=5 pp=1 m=512 n=256 k=320 grid=2",
      "st=3 cwg=3 bm=192 bn=96 epw=32 epb=1 grp=2 m=392 n=288 k=328",
      "st=3 bm=256 bn=64 bkb=256 m=264 n=72 k=328", "st=4 eb=1 m=256 n=128 k=512",
      "st=4 bn=48 epw=16 cwg=1 bm=64 m=128 n=96 k=328"}},
    {"fa",
     {"sq=200 sk=300 heads=2 kvdiv=2", "causal=1 sq=200 sk=328 heads=3 hsec=2",
      "bnk=176 osep=0 causal=1 sq=256 sk=400", "nwg=3 bnk=80 sq=392 sk=248 heads=2",
      "ppg=0 bnk=176 osep=0 sq=200 sk=400 heads=2"}},
};

struct Answer {
  enum class Kind { clean, fault, killed, late, refused } kind = Kind::clean;
  std::string text;
};

Answer judged(const std::string& kernel, const std::string& text, const char* config,
              uint64_t seeds) {
  try {
    const std::string fault = first_fault(pipeline(kernel, text, Config(config)), seeds);
    return {fault.empty() ? Answer::Kind::clean : Answer::Kind::fault, fault};
  } catch (const InternalError& e) {  // the compiler takes no such text
    return {Answer::Kind::refused, e.what()};
  }
}

std::string all_of(std::FILE* file) {
  std::string text;
  char buffer[4096];
  std::rewind(file);
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, file)) text.append(buffer, n);
  return text;
}

/// In a child, for texts that crash or never end. Time is the child's own, not that of compilers.
Answer judged_apart(const std::string& kernel, const std::string& text, const char* config,
                    uint64_t seeds) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0 || !file) throw std::runtime_error("no child");
  if (pid == 0) {
    const rlimit limit{kSecondsOfRule, kSecondsOfRule + 1}, no_core{0, 0};
    setrlimit(RLIMIT_CPU, &limit);
    setrlimit(RLIMIT_CORE, &no_core);
    const Answer a = judged(kernel, text, config, seeds);
    std::fputs(a.text.c_str(), file.get());
    std::fflush(file.get());
    _exit(static_cast<int>(a.kind));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) != pid) {
  }
  if (WIFEXITED(status))
    return {static_cast<Answer::Kind>(WEXITSTATUS(status)), all_of(file.get())};
  const bool late = WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL;
  return {late ? Answer::Kind::late : Answer::Kind::killed,
          fmt::format("signal {}", WTERMSIG(status))};
}

/// What the compiler makes of a launch's program: its text behind the preprocessor, or its code.
std::string compiled(const std::string& kernel, const std::string& text, const char* config,
                     const std::vector<std::string>& flags) {
  const std::string program = pipeline(kernel, text, Config(config)).launch.program;
  return compile_shared(find_compiler(), flags, with_prelude(program));
}

bool same(const std::string& kernel, const std::string& text, const char* config,
          const std::vector<std::string>& flags) {
  static std::map<std::string, std::string> originals;
  std::string& original = originals[fmt::format("{} {} {}", kernel, config, fmt::join(flags, " "))];
  if (original.empty()) original = compiled(kernel, kernel_text(kernel), config, flags);
  return original == compiled(kernel, text, config, flags);
}

const std::vector<std::string> kPreprocess = {"-std=c++17", "-E", "-P", "-w"},
                               kObject = {"-std=c++17",
                                          "-O2",
                                          "-g0",
                                          "-s",
                                          "-fPIC",
                                          "-shared",
                                          "-nostdlib",
                                          "-fno-exceptions",
                                          "-ffp-contract=off",
                                          "-Wl,--build-id=none",
                                          "-w"};

struct Outcome {
  enum class Kind { caught, refused, same_object, survives } kind;
  Answer answer;
};

/// All launches with one seed, then those that the change has not left as they were with more.
Outcome outcome_of(const std::string& kernel, const std::string& text) {
  std::vector<const char*> differ;
  for (const char* config : kRuleLaunches.at(kernel)) {
    if (same(kernel, text, config, kPreprocess)) continue;
    const Answer a = judged_apart(kernel, text, config, 1);
    if (a.kind == Answer::Kind::refused) return {Outcome::Kind::refused, a};
    if (a.kind != Answer::Kind::clean) return {Outcome::Kind::caught, a};
    differ.push_back(config);
  }
  std::erase_if(differ, [&](const char* c) { return same(kernel, text, c, kObject); });
  if (differ.empty()) return {Outcome::Kind::same_object, {}};
  for (const char* config : differ) {
    const Answer a = judged_apart(kernel, text, config, kSeedsOfRule);
    if (a.kind != Answer::Kind::clean) return {Outcome::Kind::caught, a};
  }
  return {Outcome::Kind::survives, {}};
}

struct Rule {
  std::string kernel;
  RuleMutant mutant;
  std::string name() const { return kernel + " " + mutant.name; }
};

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

std::set<std::string> equivalent() {
  std::ifstream in(TW_TEST_DIR "/texts/equivalent.txt");
  std::set<std::string> all;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("= ")) all.insert(line.substr(2));
  }
  return all;
}

/// One of so many is tried; all where TW_EMU_MUTANTS is 1.
size_t share_of_rules() {
  const char* text = std::getenv("TW_EMU_MUTANTS");
  return text != nullptr ? std::strtoul(text, nullptr, 10) : 300;
}

struct Tally {
  size_t refused = 0, same_object = 0, proven = 0, caught = 0, killed = 0, late = 0, survive = 0;

  void add(const Rule& rule, const Outcome& o, bool is_proven) {
    refused += o.kind == Outcome::Kind::refused ? 1 : 0;
    same_object += o.kind == Outcome::Kind::same_object ? 1 : 0;
    caught += o.kind == Outcome::Kind::caught ? 1 : 0;
    killed += o.answer.kind == Answer::Kind::killed ? 1 : 0;
    late += o.answer.kind == Answer::Kind::late ? 1 : 0;
    if (o.kind != Outcome::Kind::survives) return;
    ++(is_proven ? proven : survive);
    std::cout << (is_proven ? "is equivalent | " : "survives | ") << rule.name() << std::endl;
  }
  void print(size_t tried, size_t all) const {
    const size_t raw = caught + proven + survive, effective = caught + survive;
    const auto percent = [](size_t part, size_t whole) {
      return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<size_t>(whole, 1));
    };
    std::cout << fmt::format(
        "{} of {} mutants tried, chosen at random; {} do not compile, {} have the same object "
        "code\n"
        "{} raw mutants, {} caught, {:.1f} %; {} of them by a signal, {} by time\n"
        "{} effective mutants, {} proven equivalent, {:.1f} % survive\n",
        tried, all, refused, same_object, raw, caught, percent(caught, raw), killed, late,
        effective, proven, percent(survive, effective));
  }
};

TEST(RuleMutants, AreCaught) {
  const std::vector<Rule> all = shuffled_rules();
  const std::set<std::string> proofs = equivalent();
  Tally tally;
  const size_t count = all.size() / share_of_rules();
  for (size_t i = 0; i < count; ++i) {
    const bool proven = proofs.count(all[i].name()) != 0;
    const Outcome o = outcome_of(all[i].kernel, all[i].mutant.text);
    tally.add(all[i], o, proven);
    EXPECT_FALSE(proven && o.kind == Outcome::Kind::caught) << all[i].name() << o.answer.text;
  }
  tally.print(count, all.size());
  EXPECT_GT(tally.caught, 0u);
  if (count == all.size()) {
    EXPECT_LE(100 * tally.survive, 5 * (tally.caught + tally.survive + tally.proven));
  }
}

TEST(RuleMutants, LaunchesRunClean) {
  for (const auto& launches : kRuleLaunches) {
    for (size_t i = 0; i < launches.second.size(); i += share_of_rules() == 300 ? 8 : 1) {
      const Answer a = judged_apart(launches.first, kernel_text(launches.first), launches.second[i],
                                    share_of_rules() == 300 ? 1 : kSeedsOfRule);
      EXPECT_EQ(a.kind, Answer::Kind::clean) << launches.first << launches.second[i] << a.text;
    }
  }
}

TEST(RuleMutants, ProofsAreOfMutantsThatThereAre) {
  std::set<std::string> names;
  for (const Rule& r : rules()) EXPECT_TRUE(names.insert(r.name()).second) << r.name();
  for (const std::string& name : equivalent()) EXPECT_EQ(names.count(name), 1u) << name;
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
  EXPECT_EQ(changes_of("#if A == 1\n#pragma unroll 4\n// 1 + 2\n__launch_bounds__(1, 2) -x; 1.5f"),
            std::vector<std::string>{});
}

}  // namespace
}  // namespace tw::test
