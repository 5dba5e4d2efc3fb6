#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tw/base/error.h"

#include "examples/filetype/typer.h"

// filetype: says of files what they hold.
namespace filetype {

using nlohmann::json;
using tw::UserError;

namespace {

constexpr const char* kHelp =
    "The beginning and the end of each file, 1024 bytes of each, go through a neural network,\n"
    "and the label with the largest score is the answer. A line says:\n"
    "  PATH: LABEL (MIME TYPE, GROUP: DESCRIPTION) SCORE\n"
    "Where the score is below what its label needs, or the label stands for another, the answer\n"
    "differs from what the model said, and \"model: LABEL\" follows. Files that are empty or all\n"
    "but empty, folders and devices are not given to the model; their lines end in \"no model\".\n"
    "\nExamples:\n"
    "  filetype README.md /bin/ls\n"
    "  filetype --json ~/Downloads | jq -r 'select(.group == \"executable\").path'\n"
    "  find . -newer last-week | filetype -\n"
    "\nExit codes: 0 done, 2 some file, folder or word is wrong, 3 the machine lacks something,\n"
    "70 a bug.";

struct Arguments {
  Options options;
  std::vector<std::string> paths;
  bool json = false, features = false;
};

std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return (c >= 0 && c < 32) || c == 127; }, '?');
  return text;
}

void say(const Row& r) {
  if (!r.error.empty()) {
    std::fflush(stdout);
    std::fputs(fmt::format("filetype: {}\n", printable(r.error)).c_str(), stderr);
    return;
  }
  std::string model = r.label.empty() ? "no model" : fmt::format("{:.4f}", r.score);
  if (!r.label.empty() && r.label != r.type->label) model += ", model: " + r.label;
  fmt::print("{}: {} ({}, {}: {}) {}\n", printable(r.path), r.type->label, r.type->mime,
             r.type->group, r.type->description, model);
}

json json_of(const Row& r, bool features) {
  if (!r.error.empty()) return {{"path", r.path}, {"error", r.error}};
  json j = {{"path", r.path},
            {"label", r.type->label},
            {"mime", r.type->mime},
            {"group", r.type->group},
            {"description", r.type->description},
            {"is_text", r.type->is_text},
            {"model_label", r.label.empty() ? json() : json(r.label)},
            {"score", r.score}};
  if (features && !r.window.empty())
    j["features"] = std::vector<int32_t>(r.window.begin(), r.window.end());
  return j;
}

void add_options(CLI::App& app, Arguments& a) {
  app.add_option("FILE", a.paths,
                 "files, and folders with all that is in them; -: paths on standard input, one a "
                 "line");
  app.add_option("--model", a.options.model,
                 "model.onnx of the magika package, with its other files around it; that of .venv "
                 "when absent");
  app.add_option("--threads", a.options.threads, "most threads; 0: all")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--batch", a.options.batch, "how many files the model is asked about at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_flag("--json", a.json, "a JSON object a line; \"model_label\" is what the model said");
  app.add_flag("--features", a.features, "with --json: also the numbers that the model reads");
  app.add_flag("--no-dereference", a.options.no_dereference,
               "links are links, not what they lead to");
  app.add_flag("--no-recurse", a.options.no_recurse, "folders are folders, not what is in them");
  app.footer(kHelp);
}

/// Throws CLI::Success when help was asked for.
void parse_words(CLI::App& app, int argc, char** argv, const Arguments& a) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) throw;
    throw UserError(e.what(), "--help lists what there is");
  }
  if (a.paths.empty()) throw UserError("no file is given", "filetype FILE...; --help teaches it");
  if (a.features && !a.json) throw UserError("--features needs --json");
}

/// Whether all could be read.
bool type_files(Arguments& a) {
  if (a.options.model.empty()) a.options.model = model_of_package(FILETYPE_PACKAGES);
  bool all_read = true;
  Typer typer(a.options, [&](const Row& r) {
    all_read &= r.error.empty();
    if (!a.json) return say(r);
    fmt::print("{}\n", json_of(r, a.features).dump(-1, ' ', false, json::error_handler_t::replace));
  });
  for (const std::string& path : a.paths) {
    if (path != "-") {
      typer.add(path);
      continue;
    }
    for (std::string line; std::getline(std::cin, line);)
      if (!line.empty()) typer.add(line);
  }
  typer.flush();
  return all_read;
}

int run(int argc, char** argv) {
  Arguments a;
  CLI::App app("Says of files what they hold.", "filetype");
  add_options(app, a);
  try {
    parse_words(app, argc, argv, a);
  } catch (const CLI::ParseError& asked) {
    return app.exit(asked);
  }
  const bool all_read = type_files(a);
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    throw tw::EnvError("cannot write to standard output");
  return all_read ? 0 : 2;
}

/// One line on standard error, and the exit code. fmt throws when output fails.
int report(const std::exception& e) {
  const bool output_failed = std::ferror(stdout) != 0;
  const std::string text = output_failed ? "cannot write to standard output" : e.what();
  std::fputs(fmt::format("filetype: {}\n", text).c_str(), stderr);
  const auto* known = dynamic_cast<const tw::Error*>(&e);
  return output_failed ? 3 : known != nullptr ? known->exit_code() : 70;
}

}  // namespace
}  // namespace filetype

int main(int argc, char** argv) {
  try {
    return filetype::run(argc, argv);
  } catch (const std::exception& e) {
    return filetype::report(e);
  }
}
