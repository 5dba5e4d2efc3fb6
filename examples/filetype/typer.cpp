#include "examples/filetype/typer.h"

#include <algorithm>
#include <filesystem>

#include "tw/base/error.h"

namespace filetype {

namespace fs = std::filesystem;
using tw::Tensor;
using tw::UserError;
using tw::graph::Session;

namespace {

constexpr size_t kMostWaiting = 4096;  // rows that are kept until a batch is full

Session session_of(const Options& o) {
  tw::graph::SessionOptions options;
  options.threads = o.threads;
  return Session::load(o.model, options);
}

}  // namespace

Typer::Typer(const Options& options, Say say)
    : options_(options),
      say_(std::move(say)),
      config_(Config::read(options.model)),
      session_(session_of(options)),
      windows_(tw::host_tensor(tw::i32, {options.batch, config_.sizes.count()})) {
  check_model();
}

void Typer::check_model() const {
  const auto& in = session_.inputs();
  const auto& out = session_.outputs();
  const std::string count = std::to_string(config_.sizes.count());
  if (in.size() == 1 && in[0].dtype == tw::i32 && in[0].dims.size() == 2 &&
      in[0].dims[1] == count && out.size() == 1 && out[0].dtype == tw::f32)
    return;
  throw UserError(fmt::format("'{}' is a model of something else", options_.model),
                  fmt::format("wanted one input i32[batch,{}] and one output f32[batch,{}]", count,
                              config_.labels.size()));
}

void Typer::add(const std::string& path, bool walked) {
  try {
    add_known(path, walked);
  } catch (const UserError& e) {
    Row r;
    r.path = path;
    r.error = e.message();
    rows_.push_back(r);
  }
  if (asked_ == options_.batch || rows_.size() >= kMostWaiting) flush();
}

void Typer::flush() {
  if (asked_ > 0) ask();
  for (const Row& r : rows_) say_(r);
  rows_.clear();
  asked_ = 0;
}

/// Links to folders that a walk meets are not followed, as they might lead back.
void Typer::add_known(const std::string& path, bool walked) {
  std::error_code failed;
  const bool is_link = fs::is_symlink(fs::symlink_status(path, failed));
  if (is_link && options_.no_dereference) return add_type(path, "symlink");
  const fs::file_status status = fs::status(path, failed);
  if (failed) throw UserError(fmt::format("cannot read '{}': {}", path, failed.message()));
  if (fs::is_directory(status)) {
    if (options_.no_recurse || (walked && is_link)) return add_type(path, "directory");
    return add_folder(path);
  }
  if (!fs::is_regular_file(status)) return add_type(path, "unknown");
  add_file(path);
}

void Typer::add_folder(const std::string& path) {
  std::vector<std::string> inside;
  try {
    for (const auto& e : fs::directory_iterator(path)) inside.push_back(e.path().string());
  } catch (const fs::filesystem_error& e) {
    throw UserError(fmt::format("cannot read '{}': {}", path, e.code().message()));
  }
  std::ranges::sort(inside);
  for (const std::string& p : inside) add(p, true);
}

void Typer::add_type(const std::string& path, const std::string& label) {
  Row r;
  r.path = path;
  r.type = &config_.type(label);
  rows_.push_back(r);
}

void Typer::add_file(const std::string& path) {
  const int64_t count = config_.sizes.count();
  const std::span<int32_t> window(windows_.data<int32_t>() + asked_ * count,
                                  static_cast<size_t>(count));
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
      r.window = window;
      rows_.push_back(r);
      ++asked_;
    }
  }
}

void Typer::ask() {
  const std::string& input = session_.inputs()[0].name;
  const Tensor scores = session_.run({{input, windows_.slice(0, 0, asked_).view()}}).at(0).tensor;
  const auto labels = std::ssize(config_.labels);
  if (scores.dims() != std::vector<int64_t>{asked_, labels})
    throw UserError(fmt::format("'{}' gives another number of scores", options_.model),
                    fmt::format("wanted {}, the labels of its config.min.json", labels));
  const float* own = scores.data<float>();
  for (Row& r : rows_) {
    if (r.window.empty()) continue;
    const auto best = std::max_element(own, own + labels) - own;
    r.label = config_.labels[static_cast<size_t>(best)];
    r.score = own[best];
    r.type = &config_.judged(r.label, r.score);
    own += labels;
  }
}

}  // namespace filetype
