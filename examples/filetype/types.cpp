#include "examples/filetype/types.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tw/base/error.h"

namespace filetype {

namespace fs = std::filesystem;
using nlohmann::json;
using tw::UserError;

namespace {

constexpr const char* kHint = "wanted the files of the magika package, 1.0 or later";

/// What `take` makes of the JSON of a file.
template <class Take>
void take_json(const fs::path& file, Take&& take) {
  std::ifstream in(file);
  if (!in) throw UserError(fmt::format("cannot read '{}'", file.string()), kHint);
  try {
    take(json::parse(in));
  } catch (const json::exception& e) {
    throw UserError(fmt::format("'{}' is not as expected: {}", file.string(), e.what()), kHint);
  }
}

std::string text_or(const json& field, const std::string& otherwise) {
  return field.is_null() ? otherwise : field.get<std::string>();
}

Type type_of(const std::string& label, const json& about) {
  Type t;
  t.label = label;
  t.is_text = about.at("is_text").get<bool>();
  t.mime = text_or(about.at("mime_type"), t.is_text ? "text/plain" : "application/octet-stream");
  t.group = text_or(about.at("group"), "unknown");
  t.description = text_or(about.at("description"), label);
  return t;
}

WindowSizes sizes_of(const json& config) {
  WindowSizes s;
  s.beg_size = config.at("beg_size").get<int64_t>();
  s.end_size = config.at("end_size").get<int64_t>();
  s.block_size = config.at("block_size").get<int64_t>();
  s.least = config.at("min_file_size_for_dl").get<int64_t>();
  s.padding = config.at("padding_token").get<int32_t>();
  return s;
}

/// Windows are read as this program reads them only for models of this kind.
void check_kind(const json& config, const WindowSizes& s, const fs::path& file) {
  const bool reads_more =
      config.at("mid_size").get<int64_t>() != 0 || config.at("use_inputs_at_offsets").get<bool>();
  const bool fits = 0 < s.least && s.least <= s.beg_size && s.beg_size < s.block_size &&
                    0 <= s.end_size && s.end_size < s.block_size && s.block_size <= 1 << 20;
  if (reads_more || !fits)
    throw UserError(fmt::format("the model of '{}' reads other parts of files", file.string()),
                    "wanted one that reads the beginning and the end, as standard_v3_3");
}

}  // namespace

Config Config::read(const std::string& model) {
  const fs::path folder = fs::path(model).parent_path();
  const fs::path config = folder / "config.min.json";
  const fs::path list = folder / "../../config/content_types_kb.min.json";
  Config c;
  take_json(config, [&](const json& j) {
    c.sizes = sizes_of(j);
    check_kind(j, c.sizes, config);
    j.at("target_labels_space").get_to(c.labels);
    j.at("thresholds").get_to(c.thresholds);
    j.at("medium_confidence_threshold").get_to(c.threshold);
    j.at("overwrite_map").get_to(c.overwrite);
  });
  take_json(list, [&](const json& j) {
    for (const auto& [label, about] : j.items()) c.types[label] = type_of(label, about);
  });
  std::vector<std::string> used = c.labels;
  for (const char* label : {"directory", "empty", "symlink", "txt", "unknown"})
    used.emplace_back(label);
  for (const auto& [from, to] : c.overwrite) used.push_back(to);
  for (const std::string& label : used)
    if (!c.types.contains(label))
      throw UserError(fmt::format("'{}' lacks the label '{}'", list.string(), label), kHint);
  return c;
}

const Type& Config::type(const std::string& label) const { return types.at(label); }

const Type& Config::judged(const std::string& label, double score) const {
  const auto other = overwrite.find(label);
  const Type& t = type(other != overwrite.end() ? other->second : label);
  const auto own = thresholds.find(label);
  if (score >= (own != thresholds.end() ? own->second : threshold)) return t;
  return type(t.is_text ? "txt" : "unknown");
}

std::string model_of_package(const std::string& packages) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (const auto& python : fs::directory_iterator(packages, failed))
    for (const auto& model :
         fs::directory_iterator(python.path() / "site-packages/magika/models", failed))
      if (fs::exists(model.path() / "model.onnx", failed))
        found.push_back(model.path() / "model.onnx");
  if (found.empty())
    throw UserError(fmt::format("there is no model of the magika package in '{}'", packages),
                    "give --model FILE, or run ./quickstart, which installs it");
  return std::ranges::max(found).string();
}

}  // namespace filetype
