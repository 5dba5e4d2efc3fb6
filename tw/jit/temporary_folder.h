#pragma once

#include <string>

namespace tw {

/// A private folder for one run of the compiler, removed with all it holds. Ones that ended
/// processes left are removed when another is made.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string text() const { return path_ + "/kernel.cpp"; }
  std::string object() const { return path_ + "/kernel.so"; }
  std::string messages() const { return path_ + "/messages"; }

 private:
  std::string path_;
  int lock_;  ///< held while this process lives
};

}  // namespace tw
