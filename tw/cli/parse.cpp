#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <new>
#include <unistd.h>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/check/contestant.h"
#include "tw/cli/call.h"
#include "tw/cli/output.h"
#include "tw/cli/verb.h"
#include "tw/passes/pipeline.h"
#include "tw/target/mapping.h"
#include "tw/tensor/file.h"

namespace tw::cli {

constexpr int kMostCount = 1'000'000;

static void add_count(CLI::App& app, const std::string& flag, int& to, int least,
                      const std::string& sentence) {
  app.add_option_function<std::string>(
         flag,
         [flag, &to, least](const std::string& text) {
           to = static_cast<int>(whole_number(flag, text, least, kMostCount));
         },
         sentence)
      ->type_name("INT")
      ->default_str(std::to_string(to));
}

static std::string knob_list() {
  std::string text;
  const auto add = [&](const char* scheme, std::span<const Knob> knobs) {
    text += fmt::format("\nof {}:", scheme);
    for (const Knob& k : knobs)
      text += fmt::format("\n  {}  {}..{}, {}", k.name, k.lo, k.hi, k.sentence);
  };
  add("cpu1", cpu_knobs());
  add("cuda1", cuda_knobs());
  return text;
}

static std::string pass_list() {
  std::string text;
  for (const Pass& p : cpu_passes()) text += fmt::format("\n  {}", p.name);
  return text;
}

// budget: table, one case a flag
static void add_flag(CLI::App& app, Flag flag, Arguments& a) {
  switch (flag) {
    case Flag::device:
      app.add_option("--device", a.device, "where to run: cpu:0, cuda:0, emu:0, interp")
          ->capture_default_str();
      return;
    case Flag::machine:
      app.add_option("--device", a.device,
                     "what to make it for: cpu:0, cuda:0, or by name: a100, h200 (sm_80, sm_90a); "
                     "explain also: avx2, avx512, neon")
          ->capture_default_str();
      return;
    case Flag::dtype:
      app.add_option("--dtype", a.dtype,
                     "element type of the main tensors; f32, or all of a list, when absent");
      return;
    case Flag::mapping:
      app.add_option(
          "--mapping", a.mapping,
          "how to run it, e.g. \"cpu1 mc=264\"; chosen when absent. Knobs" + knob_list());
      return;
    case Flag::shape:
      app.add_option("--shape", a.shape,
                     "extents: axis=value[,axis=value...]; of a model's input: name=value,value..");
      return;
    case Flag::option:
      app.add_option("--option", a.options, "an option of the kernel: name=value");
      return;
    case Flag::input:
      app.add_option("--input", a.inputs, "a tensor: name=FILE.npy or name=random:SEED");
      return;
    case Flag::output:
      app.add_option("--output", a.outputs,
                     "where a result goes: name=FILE.npy; all of a model's: FOLDER");
      return;
    case Flag::source:
      app.add_option("--output", a.source,
                     "the file to write, FILE.cpp or for GPUs FILE.cu; FILE.h goes beside it")
          ->required();
      return;
    case Flag::text:
      app.add_option("--text", a.text,
                     "CUDA source that was ejected from the kernel, to be checked in its place on "
                     "emu:0: FILE.cu");
      return;
    case Flag::function:
      app.add_option("--name", a.function,
                     "what the function is called; as the kernel when absent");
      return;
    case Flag::isa:
      app.add_option(
          "--isa", a.isa,
          "instructions of a CPU: avx2, avx512, neon, generic; this machine's when absent");
      return;
    case Flag::pass:
      app.add_option(
          "--pass", a.passes,
          "a pass to run, in order; may be repeated. In the order of a compile:" + pass_list());
      return;
    case Flag::peer:
      app.add_option("--peer", a.peers,
                     "a library to compare with; all that are installed when absent");
      return;
    case Flag::callable:
      app.add_option(
          "--callable", a.callable,
          "judge what is in FILE: a plug-in (tw/measure/peer.h) as .so, or source as "
          "'eject' writes it; 'ours': the library's kernel, by the same rules, also with "
          "--device cuda:N");
      return;
    case Flag::op:
      app.add_option("--op", a.ops, "only tests with this operator; may be repeated");
      return;
    case Flag::threads:
      add_count(app, "--threads", a.threads, 0, "most threads; 0 or absent: all (eject: 1)");
      return;
    case Flag::seeds:
      add_count(app, "--seeds", a.seeds, 1,
                "how many sets of random inputs; on emu:0 each under schedules of its own");
      return;
    case Flag::timeout:
      add_count(app, "--timeout", a.timeout, 1,
                "of emu:0: seconds that a problem may take with one set of inputs");
      return;
    case Flag::check:
      app.add_flag("--check", a.check, "compare the result with the float64 reference");
      return;
    case Flag::profile:
      app.add_flag("--profile", a.profile, "time each step of a model instead of showing outputs");
      return;
    case Flag::measure:
      app.add_flag("--measure", a.measure, "measure the rates of --device, which takes seconds");
      return;
    case Flag::rows:
      app.add_option("--rows", a.rows,
                     "files or folders of measured rows; explain: bench/results, where it is, when "
                     "absent; bench: instead of timing");
      return;
    case Flag::against:
      app.add_option("--against", a.against,
                     "files or folders of earlier rows; fails when one is lost by more than 5 %");
      return;
    case Flag::before:
      app.add_option("--before", a.before,
                     "the tilewright of an earlier build, beside which cases are timed; fails when "
                     "one is slower now");
      return;
    case Flag::json:
      app.add_option("--json", a.json, "rows as JSON, to FILE or standard output")
          ->expected(0, 1)
          ->default_str("");
      return;
  }
}

static void add_verb(CLI::App& app, const Verb& verb, Arguments& a) {
  CLI::App* sub = app.add_subcommand(verb.name, verb.sentence);
  if (verb.target) {
    CLI::Option* target = sub->add_option("TARGET", a.target, verb.target);
    if (verb.target_needed) target->required();
    if (verb.detail) sub->add_option("NAME", a.detail, verb.detail);
  }
  for (Flag flag : verb.flags) add_flag(*sub, flag, a);
  sub->footer(std::string("Examples:\n") + verb.examples);
}

static int run_verb(const CLI::App& app, const Arguments& a) {
  for (const Verb& verb : verbs())
    if (app.got_subcommand(verb.name)) {
      if (a.json && !a.json->empty()) expect_writable(*a.json);
      return verb.run(a);
    }
  return 2;
}

static void print_environment() {
  for (const EnvFlag& f : env_table())
    fmt::print("{:<18} {}{}\n", f.name, f.sentence,
               *f.fallback ? fmt::format(" (default {})", f.fallback) : "");
}

/// One line on standard error, and the exit code of the kind of error.
static int report(const std::exception& e) {
  to_stderr(fmt::format("tilewright: {}\n", e.what()));
  if (auto* internal = dynamic_cast<const InternalError*>(&e);
      internal && !internal->reproducer().empty())
    to_stderr("this is a bug of tilewright; please report it with this text:\n" +
              internal->reproducer() + "\n");
  const auto* known = dynamic_cast<const Error*>(&e);
  return known ? known->exit_code() : 70;
}

[[noreturn]] static void refuse_word(const std::string& word) {
  throw UserError(
      fmt::format("{} '{}'", word.starts_with('-') ? "unknown option" : "unexpected word", word),
      "--help lists what there is");
}

/// A first word that is no verb gets a better message than the parser's.
static void check_verb(int argc, char** argv) {
  std::vector<std::string> known;
  for (const Verb& verb : verbs()) known.push_back(verb.name);
  if (argc < 2)
    throw UserError("a verb is missing", fmt::format("known verbs: {}", fmt::join(known, ", ")));
  const std::string word = argv[1];
  if (word == "--help" || word == "-h" || word == "--version") return;
  if (word.starts_with('-')) refuse_word(word);
  if (std::ranges::find(known, word) == known.end())
    throw UserError(fmt::format("there is no verb '{}'", word), did_you_mean(word, known));
}

/// An empty word is a mistake, as of a variable that is not set: no option or target takes one, and
/// options whose text is empty are those that were not given.
static void check_values(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], last = argv[i - 1];
    const size_t equals = word.find('=');
    const bool blank = word.find_first_not_of(" \t\r\n") == std::string::npos;
    const bool joined = word.starts_with("--") && equals != std::string::npos &&
                        word.find_first_not_of(" \t\r\n", equals + 1) == std::string::npos;
    if (!blank && !joined) continue;
    const bool of_option = joined || (i > 1 && last.starts_with("--"));
    const std::string name = joined ? word.substr(0, equals) : of_option ? last : "a word";
    throw UserError(
        fmt::format("{} got '{}'", name, joined ? word.substr(equals + 1) : word),
        fmt::format("wanted a value that is not empty; is a variable not set? Else leave {} out",
                    of_option ? name : "it"));
  }
}

/// Its errors are ours.
static void parse_words(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    refuse_word(app.remaining(true).front());
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) throw;
    throw UserError(e.what(), "--help lists what there is");
  }
}

/// Keeps files that the command opens from taking the number of a closed standard stream, and its
/// text with it. Opened the wrong way round: using the stream still fails.
static void occupy_closed_streams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/// The error as what a user can act on: fmt throws std::system_error when output fails.
static int report_any(const std::exception& e) {
  if (dynamic_cast<const Error*>(&e)) return report(e);
  if (std::ferror(stdout)) return report(EnvError("cannot write to standard output"));
  if (dynamic_cast<const std::bad_alloc*>(&e)) return report(EnvError("memory is used up"));
  return report(e);
}

static int parse_and_run(int argc, char** argv) {
  if (env_on(Env::help)) {
    print_environment();
    return 0;
  }
  Arguments a;
  CLI::App app("Turns tile programs into fast, proven kernels.", "tilewright");
  app.footer(
      "tilewright VERB --help teaches a verb; TW_HELP=1 lists the environment variables.\n"
      "Exit codes: 0 done, 1 check found a wrong result, 2 the words, variables or files\n"
      "are wrong, 3 the machine lacks something, 4 a device failed, 70 a bug of tilewright.");
  app.set_version_flag("--version", "tilewright " TW_VERSION);
  app.require_subcommand(1);
  for (const Verb& verb : verbs()) add_verb(app, verb, a);
  check_values(argc, argv);
  check_verb(argc, argv);
  try {
    parse_words(app, argc, argv);
  } catch (const CLI::ParseError& asked) {  // for help or the version
    return app.exit(asked);
  }
  return run_verb(app, a);
}

int main(int argc, char** argv) {
  if (std::optional<int> code = measure::serve_worker(argc, argv, check::make_contestant))
    return *code;
  occupy_closed_streams();
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // a pipe sees each line when it is said
  std::signal(SIGXFSZ, SIG_IGN);                  // a write past the limit fails with EFBIG instead
  try {
    const int code = parse_and_run(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      throw EnvError("cannot write to standard output");
    return code;
  } catch (const std::exception& e) {
    return report_any(e);
  }
}

}  // namespace tw::cli
