#pragma once

#include <memory>
#include <string>

namespace tw {

/// A shared object loaded into this process; unloaded with its last owner.
class Module {
 public:
  /// Throws EnvError when the loader refuses it.
  static std::shared_ptr<const Module> from_bytes(const std::string& bytes);
  static std::shared_ptr<const Module> from_file(const std::string& path);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  void* symbol(const std::string& name) const;  ///< null when it has none of that name

 private:
  Module(const std::string& path, int file);
  int file_;  ///< memory behind the path, or -1; open as long as the object is loaded
  void* handle_;
};

/// Modules loaded now.
int loaded_modules();

}  // namespace tw
