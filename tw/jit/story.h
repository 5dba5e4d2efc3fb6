#pragma once

#include <string>

namespace tw {

/// The steps by which one variant was made, as files in a folder of its own below TW_DUMP_DIR;
/// nothing when that is empty.
class Story {
 public:
  /// `name`: of the variant's folder. Throws EnvError when it cannot be made.
  explicit Story(const std::string& name);
  bool wanted() const { return !folder_.empty(); }
  /// Throws EnvError when the file cannot be written.
  void add(const std::string& file, const std::string& text) const;

 private:
  std::string folder_;
};

}  // namespace tw
