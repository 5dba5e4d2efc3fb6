#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace tw::graph::onnx {

/// Bytes that something keeps.
struct Bytes {
  std::string_view bytes;
  std::shared_ptr<void> owner;
};

/// The files beside a model that hold its tensors, each mapped once. Nothing outside the model's
/// folder is opened, whatever a model says.
class ExternalFiles {
 public:
  explicit ExternalFiles(const std::string& model_path);

  /// `length` bytes from `offset` of a file. UserError naming `title` for
  /// paths that leave the folder, files that are none, and parts outside them.
  Bytes part(const std::string& title, const std::string& location, int64_t offset, int64_t length);

 private:
  const Bytes& mapped(const std::string& title, const std::string& location);

  std::string folder_;
  std::map<std::string, Bytes> files_;
};

}  // namespace tw::graph::onnx
