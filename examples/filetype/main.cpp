#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tw/base/error.h"
#include "tw/graph/session.h"

#include "examples/filetype/types.h"

// filetype: says of files what they hold.
namespace filetype {

namespace fs = std::filesystem;
using tw::Tensor;
using tw::UserError;
using tw::graph::Session;

namespace {

constexpr size_t kMostWaiting = 4096;  // files that are kept until a batch is full

constexpr const char* kHelp =
    "The beginning and the end of each file, 1024 bytes of each, go through a neural network,\n"
    "and the label with the largest score is the answer. A line says:\n"
    "  PATH: LABEL (MIME TYPE, GROUP: DESCRIPTION) SCORE\n"
    "Where the score is below what its label needs, or the label stands for another, the answer\n"
    "differs from what the model said, and \"model: LABEL\" follows. Files that are empty or all\n"
    "but empty, folders and devices are not given to the model; their lines end in \"no model\".\n"
    "\nExamples:\n"
    "  filetype README.md /bin/ls\n"
    "  filetype ~/Downloads --json | jq -r 'select(.group == \"executable\").path'\n"
    "  find . -newer last-week | filetype -\n"
    "\nExit codes: 0 done, 2 some file, folder or word is wrong, 3 the machine lacks something.";

struct Arguments {
  std::vector<std::string> paths;
  std::string model;
  int threads = 0;
  int batch = 64;
  bool json = false, features = false;
  bool no_dereference = false, no_recurse = false;
};

/// What is said of a path: an error, a type, or a type with what the model said.
struct Row {
  std::string path, error;
  const Type* type = nullptr;
  std::string label;  // of the model; empty when it was not asked
  double score = 1;
  int64_t window = -1;  // its row in the batch
};

std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }, '?');
  return text;
}

/// Types files a batch at a time and prints their rows in the order in which they came.
class Typer {
 public:
  explicit Typer(const Arguments& a)
      : arguments_(a), config_(Config::read(a.model)), session_(loaded(a)) {
    const auto& in = session_.inputs();
    const auto labels = std::to_string(config_.labels.size());
    const auto count = std::to_string(config_.sizes.count());
    const auto& out = session_.outputs();
    if (in.size() != 1 || in[0].dtype != tw::i32 || in[0].dims.size() != 2 ||
        in[0].dims[1] != count || out.size() != 1 || out[0].dtype != tw::f32)
      throw UserError(fmt::format("'{}' is a model for something else", a.model),
                      fmt::format("wanted one input i32[batch,{}] and one output f32[batch,{}]",
                                  count, labels));
    windows_ = tw::host_tensor(tw::i32, {a.batch, config_.sizes.count()});
  }

  void add(const std::string& path, bool walked = false) {
    try {
      add_known(path, walked);
    } catch (const UserError& e) {
      Row r;
      r.path = path;
      r.error = e.message();
      rows_.push_back(r);
    }
    if (asked_ == arguments_.batch || rows_.size() >= kMostWaiting) flush();
  }

  /// Asks the model about the files that wait, and prints their rows.
  void flush() {
    if (asked_ > 0) ask();
    for (const Row& r : rows_) print(r);
    rows_.clear();
    asked_ = 0;
  }

  bool has_failed() const { return failed_; }

 private:
  static Session loaded(const Arguments& a) {
    tw::graph::SessionOptions options;
    options.threads = a.threads;
    return Session::load(a.model, options);
  }

  void add_known(const std::string& path, bool walked) {
    std::error_code failed;
    const bool is_link = fs::is_symlink(fs::symlink_status(path, failed));
    if (is_link && arguments_.no_dereference) return add_type(path, "symlink");
    const fs::file_status status = fs::status(path, failed);
    if (!fs::exists(status))
      throw UserError(fmt::format("cannot read '{}': {}", path,
                                  failed ? failed.message() : "No such file or directory"));
    if (fs::is_directory(status)) {
      if (arguments_.no_recurse || (walked && is_link)) return add_type(path, "directory");
      return add_folder(path);
    }
    if (!fs::is_regular_file(status)) return add_type(path, "unknown");
    add_file(path);
  }

  /// Links to folders are not followed, which might lead back.
  void add_folder(const std::string& path) {
    std::vector<std::string> inside;
    try {
      for (const auto& e : fs::directory_iterator(path)) inside.push_back(e.path().string());
    } catch (const fs::filesystem_error& e) {
      throw UserError(fmt::format("cannot read '{}': {}", path, e.code().message()));
    }
    std::ranges::sort(inside);
    for (const std::string& p : inside) add(p, true);
  }

  void add_type(const std::string& path, const std::string& label) {
    Row r;
    r.path = path;
    r.type = &config_.type(label);
    rows_.push_back(r);
  }

  void add_file(const std::string& path) {
    const auto count = static_cast<size_t>(config_.sizes.count());
    const std::span<int32_t> window(windows_.data<int32_t>() + asked_ * config_.sizes.count(),
                                    count);
    switch (read_window(path, config_.sizes, window)) {
      case Content::empty:
        return add_type(path, "empty");
      case Content::text:
        return add_type(path, "txt");
      case Content::bytes:
        return add_type(path, "unknown");
      case Content::window: {
        Row r;
        r.path = path;
        r.window = asked_++;
        rows_.push_back(r);
      }
    }
  }

  void ask() {
    const Tensor scores =
        session_.run({{session_.inputs()[0].name, windows_.slice(0, 0, asked_)}}).at(0).tensor;
    const auto labels = std::ssize(config_.labels);
    if (scores.dims() != std::vector<int64_t>{asked_, labels})
      throw UserError(fmt::format("'{}' gives another number of scores", arguments_.model),
                      fmt::format("wanted {}, the labels of its config.min.json", labels));
    for (Row& r : rows_) {
      if (r.window < 0) continue;
      const float* own = scores.data<float>() + r.window * labels;
      const auto best = std::max_element(own, own + labels) - own;
      r.label = config_.labels[static_cast<size_t>(best)];
      r.score = own[best];
      r.type = &config_.judged(r.label, r.score);
    }
  }

  void print(const Row& r) {
    failed_ |= !r.error.empty();
    if (arguments_.json) return print_json(r);
    if (!r.error.empty()) {
      std::fflush(stdout);
      std::fputs(fmt::format("filetype: {}\n", printable(r.error)).c_str(), stderr);
      return;
    }
    std::string model = r.window < 0 ? "no model" : fmt::format("{:.4f}", r.score);
    if (r.window >= 0 && r.label != r.type->label) model += ", model: " + r.label;
    fmt::print("{}: {} ({}, {}: {}) {}\n", printable(r.path), r.type->label, r.type->mime,
               r.type->group, r.type->description, model);
  }

  void print_json(const Row& r) {
    nlohmann::json j = {{"path", r.path}};
    if (!r.error.empty()) {
      j["error"] = r.error;
    } else {
      j.update({{"label", r.type->label},
                {"mime", r.type->mime},
                {"group", r.type->group},
                {"description", r.type->description},
                {"is_text", r.type->is_text},
                {"model_label", r.window < 0 ? nlohmann::json() : nlohmann::json(r.label)},
                {"score", r.score}});
      if (arguments_.features && r.window >= 0) {
        const int32_t* own = windows_.data<int32_t>() + r.window * config_.sizes.count();
        j["features"] = std::vector<int32_t>(own, own + config_.sizes.count());
      }
    }
    fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  const Arguments& arguments_;
  Config config_;
  Session session_;
  Tensor windows_;
  std::vector<Row> rows_;
  int64_t asked_ = 0;
  bool failed_ = false;
};

void add_options(CLI::App& app, Arguments& a) {
  app.add_option("FILE", a.paths,
                 "files, and folders with all that is in them; -: paths on "
                 "standard input, one a line");
  app.add_option("--model", a.model,
                 "model.onnx of the magika package, with config.min.json beside it; that of .venv "
                 "when absent");
  app.add_option("--threads", a.threads, "most threads; 0: all")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--batch", a.batch, "how many files the model is asked about at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_flag("--json", a.json, "a JSON object a line; \"model_label\" is what the model said");
  app.add_flag("--features", a.features, "with --json: also the numbers that the model reads");
  app.add_flag("--no-dereference", a.no_dereference, "links are links, not what they lead to");
  app.add_flag("--no-recurse", a.no_recurse, "folders are folders, not what is in them");
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

int type_files(Arguments& a) {
  if (a.model.empty()) a.model = model_of_package(FILETYPE_PACKAGES);
  Typer typer(a);
  for (const std::string& path : a.paths) {
    if (path != "-") {
      typer.add(path);
      continue;
    }
    for (std::string line; std::getline(std::cin, line);)
      if (!line.empty()) typer.add(line);
  }
  typer.flush();
  return typer.has_failed() ? 2 : 0;
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
  const int code = type_files(a);
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    throw tw::EnvError("cannot write to standard output");
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    const bool output_failed = std::ferror(stdout) != 0;
    const std::string text = output_failed ? "cannot write to standard output" : e.what();
    std::fputs(fmt::format("filetype: {}\n", text).c_str(), stderr);
    const auto* known = dynamic_cast<const tw::Error*>(&e);
    return output_failed ? 3 : known != nullptr ? known->exit_code() : 70;
  }
}

}  // namespace filetype

int main(int argc, char** argv) { return filetype::main(argc, argv); }
