#include "tw/jit/story.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>

#include "tw/base/env.h"
#include "tw/base/error.h"

namespace tw {

Story::Story(const std::string& name) {
  const std::string root = env(Env::dump_dir);
  if (root.empty()) return;
  folder_ = root + "/" + name;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw EnvError(fmt::format("TW_DUMP_DIR: '{}': {}", folder_, error.message()));
}

void Story::add(const std::string& file, const std::string& text) const {
  if (!wanted()) return;
  std::ofstream out(folder_ + "/" + file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw EnvError(fmt::format("TW_DUMP_DIR: cannot write '{}/{}'", folder_, file));
}

}  // namespace tw
