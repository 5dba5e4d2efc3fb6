#include "tw/base/env.h"

#include <array>
#include <cstdlib>

namespace tw {

static constexpr std::array kTable = {
#define TW_ENV(id, name, fallback, sentence) EnvFlag{name, fallback, sentence},
#include "tw/base/env.def"
#undef TW_ENV
};

std::span<const EnvFlag> env_table() { return kTable; }

std::string env(Env flag) {
  const EnvFlag& entry = kTable[static_cast<size_t>(flag)];
  const char* value = std::getenv(entry.name);
  return value ? value : entry.fallback;
}

bool env_on(Env flag) {
  std::string value = env(flag);
  return !value.empty() && value != "0";
}

}  // namespace tw
