#pragma once

#include <map>
#include <string>
#include <vector>

#include "examples/filetype/window.h"

namespace filetype {

struct Type {
  std::string label, mime, group, description;
  bool is_text = false;
};

/// A model's file and what lies beside it: config.min.json, which says what the model reads and
/// means, and the package's list of types, config/content_types_kb.min.json.
struct Config {
  WindowSizes sizes;
  std::vector<std::string> labels;           ///< of the model's outputs
  std::map<std::string, double> thresholds;  ///< least scores of labels
  double threshold = 0;                      ///< of the others
  std::map<std::string, std::string> overwrite;
  std::map<std::string, Type> types;

  /// UserError for files that are missing or say something else.
  static Config read(const std::string& model);
  const Type& type(const std::string& label) const;
  /// What a file is said to be: the model's label, or what stands for it; text or unknown where the
  /// score is below the label's threshold.
  const Type& judged(const std::string& label, double score) const;
};

/// The model of the magika package in `packages`, a folder lib of Python's. UserError without one.
std::string model_of_package(const std::string& packages);

}  // namespace filetype
