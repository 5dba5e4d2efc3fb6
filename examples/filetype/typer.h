#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tw/graph/session.h"

#include "examples/filetype/types.h"

namespace filetype {

struct Options {
  std::string model;  ///< its file
  int threads = 0;    ///< 0: all
  int batch = 64;     ///< files that the model is asked about at once
  bool no_dereference = false, no_recurse = false;
};

/// What is said of a path: an error, or a type, with what the model said where it was asked.
struct Row {
  std::string path, error;
  const Type* type = nullptr;
  std::string label;  ///< of the model; empty when it was not asked
  double score = 1;
  std::span<const int32_t> window;  ///< what the model read
};

/// Types files a batch at a time, and hands on their rows in the order in which they came.
class Typer {
 public:
  using Say = std::function<void(const Row&)>;

  /// UserError for a model that is none, or one of something else.
  Typer(const Options& options, Say say);

  /// A folder stands for all that is in it.
  void add(const std::string& path) { add(path, false); }
  /// Hands on the rows that wait. To be called at the end.
  void flush();

 private:
  void add(const std::string& path, bool walked);
  void add_known(const std::string& path, bool walked);
  void add_folder(const std::string& path);
  void add_file(const std::string& path);
  void add_type(const std::string& path, const std::string& label);
  void check_model() const;
  void ask();

  Options options_;
  Say say_;
  Config config_;
  tw::graph::Session session_;
  tw::Tensor windows_;  // a row for each file that the model will be asked about
  std::vector<Row> rows_;
  int64_t asked_ = 0;
};

}  // namespace filetype
