#include "tests/emu/apart.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <stdexcept>
#include <unistd.h>

#include "tw/base/error.h"
#include "tw/emu/apart.h"
#include "tw/emu/impl/text.h"

namespace tw::test {
namespace {

constexpr const char* kCacheFolder = "TW_CACHE_DIR";
constexpr int kSecondsApart = 10;  // a launch takes less than one

Verdict judged(const std::string& kernel, const std::string& text, const std::string& config,
               uint64_t seeds) {
  try {
    const Pipeline p = pipeline(kernel, text, Config(config));
    try {
      emu::load_text(with_prelude(p.launch.program), p.launch.spec.entry);
    } catch (const InternalError& e) {
      return {Verdict::Kind::no_text, e.what()};
    }
    return first_fault(p, seeds);
  } catch (const std::exception& e) {
    return {Verdict::Kind::failed, e.what()};
  }
}

}  // namespace

ScratchCache::ScratchCache()
    : folder_((std::filesystem::temp_directory_path() / "emu-XXXXXX").string()) {
  const char* before = std::getenv(kCacheFolder);
  before_ = before ? before : "";
  if (!mkdtemp(folder_.data())) throw std::runtime_error("no folder " + folder_);
  setenv(kCacheFolder, folder_.c_str(), 1);
}

ScratchCache::~ScratchCache() {
  before_.empty() ? unsetenv(kCacheFolder) : setenv(kCacheFolder, before_.c_str(), 1);
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

Verdict judged_apart(const std::string& kernel, const std::string& text, const std::string& config,
                     uint64_t seeds) {
  const Apart a = run_apart(
      [&](const std::function<void(std::string_view)>& tell) {
        const Verdict v = judged(kernel, text, config, seeds);
        tell(static_cast<char>(v.kind) + v.text);
      },
      {.cpu = kSecondsApart});
  if (a.ended) return {static_cast<Verdict::Kind>(a.told.at(0)), a.told.substr(1)};
  return {a.late ? Verdict::Kind::late : Verdict::Kind::killed, fmt::format("signal {}", a.signal)};
}

}  // namespace tw::test
